#!/usr/bin/env bash
# ./dev check [RULE…]: each rule prints file:line, what is wrong and what to do. All rules run, even where one fails.
#
#   layers   #include lines point down only
#   files    sizes, names, include guards, begins of comments, open ends
#   docs     links, columns, the index, the changelog, packages' reasons, generated pages
#   format   clang-format finds nothing to change
#   scripts  shellcheck
#   headers  every header compiles alone
#   fuzz     every fuzz target for FUZZ_SECONDS (60)
#   packages  installations, and outside projects in every way, by both compilers, also in a bare Debian 12; minutes, as root,
#            only when asked for
#   tidy     clang-tidy over the sources that differ from BASE (HEAD~1); only when asked for
set -euo pipefail
source deploy/dev/packages.sh
source deploy/dev/builds.sh
source deploy/dev/generated_pages.sh

project_files() {
  git -c safe.directory='*' ls-files --cached --others --exclude-standard -- "$@"
}

compare_page() {
  local page=$1
  shift
  if ! "$@" | diff --unified=1 --label "$page" --label "generated" "$page" -; then
    echo "$page:1: docs: is not what '$*' writes. Run ./dev update-golden and commit the page"
    return 1
  fi
}

check_layers() { python3 deploy/dev/check_layers.py; }

check_files() { python3 deploy/dev/check_files.py; }

check_docs() {
  local status=0 programs
  python3 deploy/dev/check_docs.py || status=1
  mapfile -t programs < <(generated_page_programs)
  if [[ ${#programs[@]} -gt 0 ]]; then
    ensure_packages build
    build_preset release "${programs[@]}" >/dev/null
    for_each_generated_page compare_page || status=1
  fi
  return $status
}

check_format() {
  local files
  mapfile -t files < <(project_files '*.cc' '*.h' '*.cu' '*.cuh')
  [[ ${#files[@]} -eq 0 ]] && return 0
  if ! clang-format-14 --dry-run --Werror "${files[@]}" 2>&1 | sed -n 's|^\([^:]*\):.*error:.*|\1|p' | sort | uniq -c |
    awk '{ print $2 ":1: format: " $1 " places. Run ./dev format " $2; found = 1 } END { exit found }'; then
    return 1
  fi
}

check_scripts() {
  local files
  mapfile -t files < <(project_files 'dev' '.ci/run' '*.sh')
  shellcheck --external-sources --format=gcc "${files[@]}"
}

check_headers() {
  ensure_packages build
  build_preset release tensord_proto tensord_grpc tensord_server_config_proto >/dev/null
  python3 deploy/dev/check_headers.py "$(job_count)"
}

check_fuzz() {
  local status=0 target name corpus
  [[ -d tests/fuzz ]] || return 0
  ensure_packages build check
  build_preset fuzz fuzz_targets
  for target in build/fuzz/bin/*_fuzz; do
    [[ -x $target ]] || continue
    name=$(basename "$target")
    corpus=build/fuzz/corpus/$name
    mkdir -p "$corpus"
    echo "== $name for ${FUZZ_SECONDS:-60} s"
    if ! "$target" -max_total_time="${FUZZ_SECONDS:-60}" -rss_limit_mb=2048 -timeout=10 -print_final_stats=1 \
      -artifact_prefix="$corpus-" "$corpus" "tests/fuzz/corpus/$name" >"$corpus.log" 2>&1; then
      tail -n 40 "$corpus.log"
      echo "tests/fuzz/fuzz_targets.cc:1: fuzz: $name found the input that $corpus.log names at its end. Add it to tests/fuzz/corpus"
      status=1
    else
      grep -E 'number_of_executed_units' "$corpus.log" || true
    fi
  done
  return $status
}

check_tidy() {
  local files
  mapfile -t files < <(git -c safe.directory='*' diff --name-only --diff-filter=d "${BASE:-HEAD~1}" -- '*.cc')
  [[ ${#files[@]} -eq 0 ]] && return 0
  ensure_packages build
  build_preset dev tensord_proto tensord_grpc tensord_server_config_proto >/dev/null
  printf '%s\n' "${files[@]}" | xargs -P "$(job_count)" -n 1 clang-tidy-14 -p build/dev --quiet
}

check_packages() {
  ensure_packages build test packages
  build_preset release tensord_installation
  TENSORD_PACKAGES=all TENSORD_BUILD=$PWD/build/release PYTHONDONTWRITEBYTECODE=1 \
    /usr/bin/python3 tests/testlib/run_unittests.py tests/packages/test_installation.py
  bash deploy/dev/try_packages.sh
}

all_rules=(layers files docs format scripts headers fuzz)
known_rules=("${all_rules[@]}" packages tidy)
rules=("$@")
[[ $# -eq 0 ]] && rules=("${all_rules[@]}")
for rule in "${rules[@]}"; do
  if [[ " ${known_rules[*]} " != *" $rule "* ]]; then
    echo "check: there is no rule '$rule'; there are: ${known_rules[*]}" >&2
    exit 2
  fi
done

ensure_packages check
failed=()
for rule in "${rules[@]}"; do
  # A subshell with its own errexit: `if` would switch it off inside the function.
  set +e
  (set -e; "check_$rule")
  status=$?
  set -e
  if [[ $status -eq 0 ]]; then
    echo "== $rule: ok"
  else
    echo "== $rule: failed"
    failed+=("$rule")
  fi
done
if [[ ${#failed[@]} -gt 0 ]]; then
  echo "check failed: ${failed[*]}" >&2
  exit 1
fi
