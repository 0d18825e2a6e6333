#!/usr/bin/env bash
# ./dev build [PRESET [TARGET…]]
set -euo pipefail
source deploy/dev/packages.sh
source deploy/dev/builds.sh

preset=${1:-release}
[[ $# -gt 0 ]] && shift
ensure_packages build
[[ $preset == fuzz ]] && ensure_packages check
build_preset "$preset" "$@"
