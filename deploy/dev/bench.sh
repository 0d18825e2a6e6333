#!/usr/bin/env bash
# ./dev bench [--filter=S1|G07|…] [--threads=1,2] [--json=FILE]: the benchmarks of tests/bench, in the release build.
set -euo pipefail
source deploy/dev/packages.sh
source deploy/dev/builds.sh

ensure_packages build test
build_preset release
exec /usr/bin/python3 tests/bench/run.py --bin build/release/bin "$@"
