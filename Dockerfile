# tensord in a container. Any Debian 12 (bookworm) serves as the base:
#   docker build --tag tensord .
#   docker run --rm --volume tensord-run:/run/tensord --publish 127.0.0.1:9464:9464 tensord
# See docs/container.md for TCP, settings and health checks.
ARG BASE=debian:12

FROM ${BASE} AS build
WORKDIR /src
# The packages change less often than the sources: a layer of their own.
COPY deploy/dev/packages.txt deploy/dev/packages.sh deploy/dev/setup.sh deploy/dev/
RUN bash deploy/dev/setup.sh build && rm -rf /var/lib/apt/lists/*
COPY . .
# Of the sources, for tensord_build_info: the repository is not in the image. docker build --build-arg GIT_REVISION=$(git rev-parse HEAD)
ARG GIT_REVISION=unknown
RUN TENSORD_GIT_REVISION=$GIT_REVISION ./dev build release tensord tensordctl && strip build/release/bin/tensord build/release/bin/tensordctl \
 && sed '/^#ifndef/,$d' build/sources/ducc0-*/src/ducc0/fft/fft1d_impl.h >build/ducc0.txt

FROM ${BASE} AS runtime
COPY deploy/dev/packages.txt deploy/dev/packages.sh deploy/dev/setup.sh /tmp/setup/deploy/dev/
RUN cd /tmp/setup && bash deploy/dev/setup.sh runtime && rm -rf /tmp/setup /var/lib/apt/lists/* \
 && groupadd --gid 65532 tensord && useradd --uid 65532 --gid 65532 --no-create-home --shell /usr/sbin/nologin tensord \
 && install --directory --owner=65532 --group=65532 --mode=0750 /run/tensord
COPY --from=build /src/build/release/bin/tensord /src/build/release/bin/tensordctl /usr/local/bin/
COPY LICENSE /usr/share/doc/tensord/
# The notices of libraries that are part of the binary rather than packages.
COPY --from=build /src/build/ducc0.txt /usr/share/doc/tensord/
COPY --from=build /usr/share/doc/libgrpc-dev/copyright /usr/share/doc/tensord/grpc.txt
COPY --from=build /usr/share/doc/libabsl-dev/copyright /usr/share/doc/tensord/abseil.txt
# A library that packages.txt forgot fails the build here and not the first start.
RUN tensord --version && tensordctl help >/dev/null

USER 65532:65532
# Server and tensordctl take the socket of the runtime folder: /run/tensord/tensord.sock.
ENV XDG_RUNTIME_DIR=/run/tensord
VOLUME /run/tensord
# 7070 for a --listen of your own, 9464 for Prometheus.
EXPOSE 7070 9464
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 CMD ["tensordctl", "health"]
ENTRYPOINT ["tensord"]
CMD ["--listen=unix:/run/tensord/tensord.sock", "--metrics=0.0.0.0:9464"]
