#!/usr/bin/env bash
# ./dev gpu [--host] [--libraries=FOLDER] [--checks|--figures] [--binaries=FOLDER]: every check of the CUDA backend on this
# machine's GPU, and the figures beside PyTorch, JAX and CuPy where the Python of the benchmarks has them. Under 8 minutes:
# each step has a budget, and what is beyond it is told. The table comes last; logs and figures are in build/gpu.
#
#   --host        on the CUDA device that the processor plays (tests/hostcuda), with small arrays: that all of it works
#   --libraries   where NVIDIA's libraries are, as cuda.libraries; default: their usual places
#   --checks      no figures; --figures: no checks
#   --binaries    built elsewhere, of this checkout: nothing is built or installed
set -euo pipefail
source deploy/dev/packages.sh
source deploy/dev/builds.sh
source deploy/dev/server_process.sh

libraries='' binaries='' is_host='' parts='checks figures' host_cases=/abs
for argument in "$@"; do
  case $argument in
    --host) is_host=1 ;;
    --libraries=*) libraries=${argument#*=} ;;
    --binaries=*) binaries=${argument#*=} ;;
    --checks | --figures) parts=${argument#--} ;;
    *)
      echo "gpu: there is no flag '$argument'" >&2
      exit 2
      ;;
  esac
done

if [[ -z $binaries ]]; then
  binaries=build/release/bin
  ensure_packages build test
  targets=(tensord conformance_test cuda_codegen_test bench_cuda)
  [[ -z $is_host ]] || targets+=(tensord_host_cuda)
  build_preset release "${targets[@]}"
fi
[[ -z $is_host ]] || libraries=$PWD/$(dirname "$binaries")/hostcuda
kept=build/gpu
mkdir -p "$kept"
python=build/peers/bin/python
[[ -x $python ]] || python=python3
summary=()
failed=0
server_binaries=$binaries
trap 'stop_server || true' EXIT

# step NAME SECONDS COMMAND…: runs it for so long at most; its output goes to a log, and what came of it to the summary.
step() {
  local name=$1 budget=$2 start=$SECONDS status=0 outcome='well'
  shift 2
  printf '== %s, at most %s s\n' "$name" "$budget"
  timeout --kill-after=10 "$budget" "$@" >"$kept/$name.log" 2>&1 </dev/null || status=$?
  case $status in
    0) ;;
    124 | 137) outcome='OUT OF TIME' ;;
    *) outcome="FAILED with $status" ;;
  esac
  if [[ $status -ne 0 ]]; then
    failed=1
    tail -n 15 "$kept/$name.log"
  fi
  summary+=("$(printf '%-24s %5s s of %3s  %s' "$name" "$((SECONDS - start))" "$budget" "$outcome")")
}

leave_out() { summary+=("$(printf '%-24s left out: %s' "$1" "$2")"); }

# The public conformance cases, where they lie beside the checkout, against a server on the GPU.
conformance() {
  local folder=${TENSORD_CONFORMANCE:-../shared/conformance} cases
  if [[ ! -f $folder/run_cases.py ]]; then
    leave_out conformance "there are no cases in $folder"
  elif ! /usr/bin/python3 -c 'import grpc' 2>/dev/null; then
    leave_out conformance "this machine's Python has no grpc"
  elif ! start_server "$kept/server.log" --listen="unix:$PWD/$kept/server.sock" "${settings[@]}"; then
    failed=1
    leave_out conformance "the server did not start: $kept/server.log"
  else
    cases=(/usr/bin/python3 "$folder/run_cases.py" --target "$server_target" --proto proto --cases "$folder/cases")
    [[ -z $is_host ]] || cases+=(--filter "$host_cases")
    step conformance-row 45 "${cases[@]}" --mode row --call graph
    step conformance-reversed 45 "${cases[@]}" --mode reversed --call fingerprint
    stop_server || { failed=1; summary+=("the server did not stop cleanly: $kept/server.log"); }
  fi
}

checks() {
  # Each kernel takes NVRTC a tenth of a second: one case of so many, and so many graphs, are within the budget.
  local one_of=12 graphs=30
  [[ -z $is_host ]] || { one_of=500; graphs=2; }
  export TENSORD_CUDA_LIBRARIES=${libraries:-usual}
  step device 10 "$binaries/tensord" --check-config "${settings[@]}"
  step operations 80 env TENSORD_CUDA_CASES=$one_of "$binaries/conformance_test" --gtest_filter='*BackendSuite*cuda*'
  # The functions of the device itself: the one that the host plays has the host's.
  [[ -n $is_host ]] || step numbers 40 "$binaries/conformance_test" --gtest_filter='*Accuracy*cuda*'
  step random-graphs 50 env TENSORD_CUDA_GRAPHS=$graphs "$binaries/conformance_test" --gtest_filter=RandomGraphs.AgreeOnCuda
  # By NVIDIA's compiler to machine code; skipped where there is none. All texts take it minutes: ./dev test has them.
  step texts 30 "$binaries/cuda_codegen_test" --gtest_filter=CudaPrinterTest.AssemblesForADevice
  conformance
}

figures() {
  local bench=("$binaries/bench_cuda" "--libraries=$libraries") library
  [[ -z $is_host ]] || bench+=(--divide=1048576 --milliseconds=1)
  rm -f "$kept"/*.json
  # Twice, in two processes: results have the same bits.
  step figures 55 "${bench[@]}" --json="$kept/figures.json"
  step again 30 "${bench[@]}" --milliseconds=1 --json="$kept/again.json"
  step same-bits 5 python3 tests/bench/cuda/same_bits.py "$kept/figures.json" "$kept/again.json"
  [[ -z $is_host ]] || return 0
  for library in torch torch-compiled jax cupy; do
    # A library that is not there is no fault.
    echo "== $library"
    timeout --kill-after=5 22 "$python" tests/bench/cuda/peers.py "$library" "$kept/figures.json" "$kept/$library.peer.json" \
      >"$kept/$library.log" 2>&1 </dev/null || tail -n 1 "$kept/$library.log"
  done
}

settings=(--set=devices=cuda:0 "--set=cuda.libraries=$libraries")
[[ $parts != *checks* ]] || checks
[[ $parts != *figures* ]] || figures
echo
printf '%s\n' "${summary[@]}"
if [[ -s $kept/figures.json ]]; then
  echo
  shopt -s nullglob
  python3 tests/bench/cuda/table.py "$kept/figures.json" "$kept"/*.peer.json
fi
exit "$failed"
