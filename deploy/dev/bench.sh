#!/usr/bin/env bash
# ./dev bench [--filter=S1|G07|…] [--threads=1,2] [--peers=jax,numpy|none] [--json=FILE] [--report]: the benchmarks of
# tests/bench, in the release build, beside other libraries in a Python of their own. --report=FILE only writes
# docs/use/benchmarks from an earlier run's file.
set -euo pipefail
source deploy/dev/packages.sh
source deploy/dev/builds.sh
source deploy/dev/peers.sh

run=(/usr/bin/python3 tests/bench/run.py --bin build/release/bin --peer-python build/peers/bin/python)
for argument in "$@"; do
  case $argument in
    --report=*) exec "${run[@]}" "$@" ;;
    --peers=none) no_peers=1 ;;
  esac
done
ensure_packages build test
build_preset release
if [[ -z ${no_peers:-} ]]; then
  # Without them the benchmarks still run.
  if ensure_packages peers; then ensure_peers; fi
fi
exec "${run[@]}" "$@"
