# tensord in a container. Any Debian 12 (bookworm) serves as the base:
#   docker build --tag tensord .
#   docker run --rm --volume tensord-run:/run/tensord --publish 127.0.0.1:9464:9464 tensord
# With NVIDIA's libraries, for servers with GPUs (docs/operate/gpus.md):
#   docker build --target cuda --tag tensord:cuda .
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

# ---- NVIDIA's libraries, for the target "cuda" alone ----

FROM ${BASE} AS cuda_libraries
WORKDIR /tmp/setup
COPY deploy/dev/packages.txt deploy/dev/packages.sh deploy/dev/setup.sh deploy/dev/cuda_libraries.txt deploy/dev/
RUN bash deploy/dev/setup.sh libraries && rm -rf /var/lib/apt/lists/*
# For a build without access to Python's registry: --build-arg PIP_INDEX_URL=…, or a folder that is mounted.
ARG PIP_INDEX_URL
ARG PIP_FIND_LINKS
ARG PIP_NO_INDEX
# As they are, with their licences. What nobody opens stays out.
RUN python3 -m pip install --no-deps --no-cache-dir --target packages --requirement deploy/dev/cuda_libraries.txt \
 && mkdir --parents /opt/nvidia/lib /opt/nvidia/doc \
 && for name in nvrtc nvrtc-builtins cublas cublasLt cusolver cufft cusparse nvJitLink; do \
      mv packages/nvidia/cu13/lib/lib$name.so.* /opt/nvidia/lib/ || exit 1; done \
 && for package in packages/*.dist-info; do \
      find "$package" -iname 'license*' -type f -exec cp {} "/opt/nvidia/doc/$(basename "$package" .dist-info)" \; ; done \
 && test "$(find /opt/nvidia/doc -type f | wc -l)" -eq "$(grep --count == deploy/dev/cuda_libraries.txt)" \
 && rm -rf packages

FROM runtime AS cuda
USER root
COPY --from=cuda_libraries /opt/nvidia/lib/ /opt/nvidia/lib/
COPY --from=cuda_libraries /opt/nvidia/doc/ /usr/share/doc/nvidia-cuda-libraries/
# The loader finds them whatever the settings are. A library that cuda_libraries.txt forgot fails the build here. A volume that
# is mounted at /cache belongs to the server then.
RUN echo /opt/nvidia/lib >/etc/ld.so.conf.d/nvidia-cuda-libraries.conf && ldconfig && ! ldd /opt/nvidia/lib/*.so.* | grep 'not found' \
 && install --directory --owner=65532 --group=65532 --mode=0700 /cache
USER 65532:65532
# The parts of the driver that NVIDIA's container runtime mounts: compute is libcuda.so.1.
ENV NVIDIA_DRIVER_CAPABILITIES=compute,utility
LABEL org.opencontainers.image.licenses="Apache-2.0 AND LicenseRef-NVIDIA-CUDA-EULA"
CMD ["--listen=unix:/run/tensord/tensord.sock", "--metrics=0.0.0.0:9464", "--set=devices=cuda:0", "--set=devices=cpu"]

# Without --target.
FROM runtime
