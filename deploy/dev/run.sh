#!/usr/bin/env bash
# ./dev run [tensord flags]: the server, in the foreground.
set -euo pipefail
source deploy/dev/packages.sh
source deploy/dev/builds.sh

ensure_packages build
build_preset release tensord tensordctl
exec build/release/bin/tensord "$@"
