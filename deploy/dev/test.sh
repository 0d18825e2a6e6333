#!/usr/bin/env bash
# ./dev test [--preset=PRESET] [PATTERN] [ctest arguments]
#
# Without arguments: every test in the release build, then the tests that carry the label `sanitize` under
# AddressSanitizer with UndefinedBehaviorSanitizer, and those with the label `threads` under ThreadSanitizer. All three builds are tested even where the
# first has failures.
#
# With arguments: the tests that they select, in one build, which makes only what these need; then the five slowest cases.
# The pattern is a regular expression whose case does not matter. It selects tests by their ctest names, or else suites and
# cases of GoogleTest and unittest by theirs (find_tests.py).
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

# A test of one thread shows nothing to ThreadSanitizer.
label_of() { [[ $1 == tsan ]] && echo threads || echo sanitize; }

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
      # Addresses that a silenced report names are not remembered: their list is searched at each race inside gRPC, and
      # hides races of ours at the same addresses.
      TSAN_OPTIONS="suppressions=$suppressions/tsan.supp:second_deadlock_stack=1:suppress_equal_addresses=0" \
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
    run_tests "$preset" -L "$(label_of "$preset")" || failed+=("$preset")
  done
  if [[ ${#failed[@]} -gt 0 ]]; then
    python3 deploy/dev/failed_tests.py "${failed[@]/#/build/}"
    echo "== tests failed in: ${failed[*]}. One again: ./dev test --preset=${failed[0]} NAME" >&2
    return 1
  fi
  echo "== all tests passed in release, asan and tsan after $SECONDS s"
}

test_selected() {
  local selection names gtest_filter cases reports status=0
  configure_preset "$preset"
  ninja -C "build/$preset" build.ninja >/dev/null # which tests there are now
  selection=$(python3 deploy/dev/find_tests.py "build/$preset" "$pattern" "${arguments[@]}")
  mapfile -t names < <(sed -n 's/^test //p' <<<"$selection")
  gtest_filter=$(sed -n 's/^gtest //p' <<<"$selection")
  cases=$(sed -n 's/^unittest //p' <<<"$selection")
  build_preset "$preset" "${names[@]}"

  reports=$(mktemp --directory --tmpdir tensord-test.XXXXXX)
  # shellcheck disable=SC2064  # the folder of now
  trap "rm -rf '$reports'" EXIT
  export GTEST_OUTPUT=json:$reports/ TENSORD_REPORTS=$reports
  [[ -z $gtest_filter ]] || export GTEST_FILTER=$gtest_filter
  [[ -z $cases ]] || export TENSORD_CASES=$cases
  run_tests "$preset" "${arguments[@]}" -R "^($(IFS='|' && echo "${names[*]}"))\$" \
    --no-label-summary --output-junit "$reports/ctest.xml" || status=$?
  python3 deploy/dev/slowest_tests.py "build/$preset" "$reports" "$reports/ctest.xml" || status=1
  return "$status"
}

ensure_packages build test
ensure_promtool
if [[ $# -eq 0 ]]; then
  test_everything
  exit
fi

preset=release
pattern=
arguments=()
for argument in "$@"; do
  case $argument in
    --preset=*) preset=${argument#--preset=} ;;
    -*) arguments+=("$argument") ;;
    *) if [[ -z $pattern && ${#arguments[@]} -eq 0 ]]; then pattern=$argument; else arguments+=("$argument"); fi ;;
  esac
done
if [[ $preset == asan || $preset == tsan ]]; then
  arguments+=(-L "$(label_of "$preset")")
fi
test_selected
