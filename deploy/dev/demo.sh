#!/usr/bin/env bash
# ./dev demo: from nothing to evaluated graphs. Builds, starts a server on a socket of its own, asks it through the
# command line and the Python client, checks the answers against NumPy, shows what the server counted, and stops it.
set -euo pipefail
source deploy/dev/packages.sh
source deploy/dev/builds.sh
source deploy/dev/server_process.sh

python=/usr/bin/python3
graphs=clients/examples/graphs
folder=''

heading() { printf '\n== %s\n' "$1"; }

shown() {
  echo "\$ $*"
  "$@"
}

show_metrics() {
  "$python" - "$server_metrics" <<'PYTHON'
import re
import sys
import urllib.request

text = urllib.request.urlopen(f"http://{sys.argv[1]}/metrics", timeout=10).read().decode()
wanted = re.compile(r"tensord_(rpc_handled|compile_requests|execute)_total|tensord_compile_seconds_(sum|count)|tensord_program_cache_entries")
lines = [line for line in text.splitlines() if wanted.match(line) and not line.endswith(" 0")]
print("\n".join("  " + line for line in lines[:12]))
print(f"  … {sum(not line.startswith('#') for line in text.splitlines())} series in all, at http://{sys.argv[1]}/metrics")
PYTHON
}

ensure_packages build demo
build_preset release tensord tensordctl

folder=$(mktemp --directory --tmpdir tensord-demo.XXXXXX)
trap 'stop_server || true; rm -rf "$folder"' EXIT
tensordctl=build/release/bin/tensordctl

heading "Starting the server"
start_server "$folder/server.log" --listen="unix:$folder/tensord.sock" --metrics=127.0.0.1:0
echo "  gRPC at $server_target, metrics at $server_metrics"
shown "$tensordctl" health --target="$server_target"
shown "$tensordctl" info --target="$server_target"

heading "Two graphs from JSON files, arrays from .npy files"
"$python" deploy/dev/demo_arrays.py write "$folder"
shown "$tensordctl" run "$graphs/tanh_affine.json" --target="$server_target" \
  --input a="$folder/a.npy" --input x="$folder/x.npy" --input b="$folder/b.npy" --output y="$folder/y.npy"
shown "$tensordctl" run "$graphs/softmax_layer.json" --target="$server_target" \
  --input x="$folder/features.npy" --input w="$folder/weights.npy" --input b="$folder/bias.npy" --output p="$folder/p.npy"
"$python" deploy/dev/demo_arrays.py compare "$folder"

heading "The Python client"
shown "$python" clients/examples/python/demo.py --target "$server_target"

heading "What the server counted"
show_metrics

heading "Stopping the server (SIGTERM: it finishes what it has)"
stop_server
echo "  stopped"

cat <<'NEXT'

== Where to go next
  ./dev run                          a server of your own, at your user's default socket
  build/release/bin/tensordctl help  the command line: run, compile, explain, validate, bench, top …
  clients/examples                   Python, C++ and graphs as JSON
  README.md, docs/architecture.md    what it is and how it works
NEXT
