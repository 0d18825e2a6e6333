# tensord in a container. Any Debian 12 (bookworm) serves as the base:
#   docker build --tag tensord .
#   docker run --rm --volume tensord-run:/run/tensord --publish 127.0.0.1:9464:9464 tensord
# See docs/operate/container.md for TCP, settings, health checks, and how the base is brought up to date.
#
# debian:12-slim of 2026-08-24, for all architectures: docker buildx imagetools inspect debian:12-slim shows today's.
ARG BASE=debian:12-slim@sha256:88200866dfff7ea7f5cbcb6ec7c8a701889efe6fe859fe64d6990e4b07ea4171

FROM ${BASE} AS build
WORKDIR /src
# The packages change less often than the sources: a layer of their own.
COPY deploy/dev/packages.txt deploy/dev/packages.sh deploy/dev/setup.sh deploy/dev/
RUN bash deploy/dev/setup.sh build && rm -rf /var/lib/apt/lists/*
COPY . .
# Of the sources, for tensord_build_info: the repository is not in the image. docker build --build-arg GIT_REVISION=$(git rev-parse HEAD)
ARG GIT_REVISION=unknown
# What is part of the binary rather than a package: the list of it and its notices.
RUN TENSORD_GIT_REVISION=$GIT_REVISION ./dev build release tensord tensordctl && strip build/release/bin/tensord build/release/bin/tensordctl \
 && mkdir build/notices && python3 deploy/dev/spdx.py build/release build/notices >build/notices/tensord.spdx.json

FROM ${BASE} AS runtime
WORKDIR /tmp/setup
COPY deploy/dev/packages.txt deploy/dev/packages.sh deploy/dev/setup.sh deploy/dev/
# Nothing in the image may take another user's rights.
RUN bash deploy/dev/setup.sh runtime && rm -rf /var/lib/apt/lists/* \
 && groupadd --gid 65532 tensord && useradd --uid 65532 --gid 65532 --no-create-home --shell /usr/sbin/nologin tensord \
 && install --directory --owner=65532 --group=65532 --mode=0750 /run/tensord \
 && find / -xdev -type f -perm /6000 -exec chmod a-s {} +
WORKDIR /
COPY --from=build /src/build/release/bin/tensord /src/build/release/bin/tensordctl /usr/local/bin/
COPY LICENSE /usr/share/doc/tensord/
COPY --from=build /src/build/notices/ /usr/share/doc/tensord/
# A library that packages.txt forgot fails the build here and not the first start.
RUN rm -rf /tmp/setup && tensord --version && tensordctl help >/dev/null

ARG BASE
ARG GIT_REVISION=unknown
LABEL org.opencontainers.image.title="tensord" \
      org.opencontainers.image.description="Evaluates tensor graphs for clients over gRPC" \
      org.opencontainers.image.version="0.10.0" \
      org.opencontainers.image.revision="$GIT_REVISION" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.base.name="$BASE"

USER 65532:65532
# Server and tensordctl take the socket of the runtime folder: /run/tensord/tensord.sock.
ENV XDG_RUNTIME_DIR=/run/tensord
VOLUME /run/tensord
# 7070 for a --listen of your own, 9464 for Prometheus and probes.
EXPOSE 7070 9464
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 CMD ["tensordctl", "health"]
ENTRYPOINT ["tensord"]
CMD ["--listen=unix:/run/tensord/tensord.sock", "--metrics=0.0.0.0:9464"]
