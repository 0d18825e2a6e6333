#!/usr/bin/env bash
# ./dev matrix [PATTERN]: the public conformance cases under every setting of the test matrix whose name matches the
# pattern (an extended regular expression; default: all).
#
# The settings are those of tests/testlib/runs/settings_matrix.h, and before them the CUDA device that the host plays
# (tests/hostcuda), which takes longest. The cases lie beside the checkout in ../shared/conformance,
# or where TENSORD_CONFORMANCE says; they belong to others and are no part of this repository. Each setting has a server
# of its own, which gets every case with row-major arrays and the graph in the call, and again with reversed shapes and
# by fingerprint. As many settings run at once as there are cores, or JOBS. A line a setting; server logs and reports stay
# under build/ci. TENSORD_SKIP_BUILD=1: what is built is what is run.
set -euo pipefail
source deploy/dev/packages.sh
source deploy/dev/builds.sh
source deploy/dev/server_process.sh

conformance=${TENSORD_CONFORMANCE:-../shared/conformance}
pattern=${1:-.}
kept=build/ci
folder=''

# run_cases NAME REPORT MODE CALL: prints what came of it, "N passed, M failed", failures before it.
run_cases() {
  local report=$1 mode=$2 call=$3
  /usr/bin/python3 "$conformance/run_cases.py" --target "$server_target" --proto proto \
    --cases "$conformance/cases" --invalid "$conformance/invalid" --mode "$mode" --call "$call" \
    --report "$report.json" >"$report.txt" 2>&1 </dev/null || { grep '^FAIL' "$report.txt" || tail -n 5 "$report.txt"; return 1; }
}

# In a subshell, whose server has a socket of its own.
run_setting() {
  local name=$1 status=0 file flags=() setting
  shift
  trap 'stop_server || true' EXIT
  for setting in "$@"; do flags+=("--set=$setting"); done
  file=$kept/$(tr -c 'a-zA-Z0-9_\n' '-' <<<"$name")
  start_server "$file.log" --listen="unix:$folder/$BASHPID.sock" "${flags[@]}" || return 1
  run_cases "$file-row" row graph || status=1
  run_cases "$file-reversed" reversed fingerprint || status=1
  if ! stop_server; then
    echo "The server did not stop cleanly. The end of its log:"
    tail -n 20 "$file.log"
    status=1
  fi
  printf '%-44s row: %s; reversed: %s\n' "$name" "$(tail -n 1 "$file-row.txt")" "$(tail -n 1 "$file-reversed.txt")"
  return $status
}

if [[ ! -f $conformance/run_cases.py ]]; then
  echo "== no conformance cases in $conformance"
  exit 0
fi
if [[ ${TENSORD_SKIP_BUILD:-} != 1 ]]; then
  ensure_packages build test
  build_preset release tensord print_settings_matrix tensord_host_cuda
fi
mkdir -p "$kept"
folder=$(mktemp --directory --tmpdir tensord-matrix.XXXXXX)
trap 'kill $(jobs -rp) 2>/dev/null || true; wait; rm -rf "$folder"' EXIT
: >"$folder/failed"

count=0
while IFS=$'\t' read -r -a fields <&3; do
  [[ ${fields[0]} =~ $pattern ]] || continue
  count=$((count + 1))
  while (($(jobs -rp | wc -l) >= $(job_count))); do wait -n || true; done
  (
    run_setting "${fields[@]}" >"$folder/$count.txt" 2>&1 || echo "${fields[0]}" >>"$folder/failed"
    cat "$folder/$count.txt"
  ) &
done 3< <(
  printf 'on the host CUDA device\tdevices=cuda:0\tcuda.libraries=%s\n' "$PWD/build/release/hostcuda"
  build/release/bin/print_settings_matrix
)

wait
mapfile -t failed <"$folder/failed"
if ((count == 0)); then
  echo "== no setting matches '$pattern'" >&2
  exit 2
fi
if ((${#failed[@]} > 0)); then
  printf "== failed under '%s'\n" "${failed[@]}"
  echo "== logs and reports: $kept"
  exit 1
fi
echo "== all conformance cases passed under $count settings in $SECONDS s"
