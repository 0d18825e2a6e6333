#!/usr/bin/env bash
# ./dev demo: from nothing to evaluated graphs. Builds, starts a server on a socket of its own, asks it through the
# command line and the Python client, checks the answers against NumPy, shows what the server counted, and stops it.
set -euo pipefail
source deploy/dev/packages.sh
source deploy/dev/builds.sh
source deploy/dev/server_process.sh

python=/usr/bin/python3
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
PATH=$PWD/build/release/bin:$PATH

heading "Starting the server"
# Its default socket, and the clients', is in the user's runtime folder.
export XDG_RUNTIME_DIR=$folder
start_server "$folder/server.log" --listen="unix:$folder/tensord.sock" --metrics=127.0.0.1:0
echo "  gRPC at $server_target, metrics at $server_metrics"
shown tensordctl health
shown tensordctl info | grep -v '^limit'

heading "Two graphs from JSON files, arrays from .npy files"
"$python" deploy/dev/demo_arrays.py write "$folder"
cp clients/examples/graphs/*.json "$folder"
(
  cd "$folder"
  shown tensordctl run tanh_affine.json --input a=a.npy --input x=x.npy --input b=b.npy --output y=y.npy
  shown tensordctl run softmax_layer.json --input x=features.npy --input w=weights.npy --input b=bias.npy --output p=p.npy
)
"$python" deploy/dev/demo_arrays.py compare "$folder"

heading "The Python client"
shown "$python" clients/examples/python/demo.py --target "$server_target"

heading "What the server counted"
show_metrics

heading "Stopping the server (SIGTERM: it finishes what it has)"
stop_server
echo "  stopped"

cat <<'NEXT'

That was all of it: ./dev run starts a server of your own, build/release/bin/tensordctl help and README.md lead on.
NEXT
