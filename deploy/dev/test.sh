#!/usr/bin/env bash
# ./dev test [--preset=PRESET] [ctest arguments]
#
# Without arguments: every test in the release build, then the tests that carry the label `sanitize` under
# AddressSanitizer with UndefinedBehaviorSanitizer, and under ThreadSanitizer. With arguments: the tests that they
# select, in one build. All three builds are tested even where the first has failures.
set -euo pipefail
source deploy/dev/packages.sh
source deploy/dev/builds.sh
source deploy/dev/promtool.sh

# GCC 12's sanitizers cannot place their shadow memory where the kernel randomizes addresses over 32 bits.
without_address_randomization() {
  if setarch "$(uname -m)" --addr-no-randomize true 2>/dev/null; then
    setarch "$(uname -m)" --addr-no-randomize "$@"
  else
    "$@"
  fi
}

run_tests() {
  local preset=$1
  shift
  local suppressions=$PWD/deploy/dev
  local ctest=(ctest --test-dir "build/$preset" --output-on-failure --no-tests=error -j "$(job_count)" "$@")
  echo "== testing $preset"
  case $preset in
    asan)
      ASAN_OPTIONS="detect_stack_use_after_return=1:strict_string_checks=1:allocator_may_return_null=1" \
      LSAN_OPTIONS="suppressions=$suppressions/lsan.supp:print_suppressions=0" \
      UBSAN_OPTIONS="print_stacktrace=1" \
        without_address_randomization "${ctest[@]}"
      ;;
    tsan)
      TSAN_OPTIONS="suppressions=$suppressions/tsan.supp:second_deadlock_stack=1" \
        without_address_randomization "${ctest[@]}"
      ;;
    *)
      "${ctest[@]}"
      ;;
  esac
}

# Only failures are printed: a record of the whole output loses them among thousands of tests that passed.
test_everything() {
  local failed=() preset
  export GTEST_BRIEF=1
  build_preset release
  run_tests release || failed+=(release)
  for preset in asan tsan; do
    build_preset "$preset" sanitize_tests
    run_tests "$preset" -L sanitize || failed+=("$preset")
  done
  if [[ ${#failed[@]} -gt 0 ]]; then
    echo "== tests failed in: ${failed[*]}. One again: ./dev test --preset=${failed[0]} -R NAME" >&2
    return 1
  fi
  echo "== all tests passed in release, asan and tsan after $SECONDS s"
}

ensure_packages build test
ensure_promtool
if [[ $# -eq 0 ]]; then
  test_everything
  exit
fi

preset=release
arguments=()
for argument in "$@"; do
  case $argument in
    --preset=*) preset=${argument#--preset=} ;;
    *) arguments+=("$argument") ;;
  esac
done
if [[ $preset == asan || $preset == tsan ]]; then
  build_preset "$preset" sanitize_tests
  arguments+=(-L sanitize)
else
  build_preset "$preset"
fi
run_tests "$preset" "${arguments[@]}"
