#!/usr/bin/env bash
# ./dev format [FILE…]: clang-format, in place.
set -euo pipefail
source deploy/dev/packages.sh

command -v clang-format-14 >/dev/null || ensure_packages check
files=("$@")
[[ $# -eq 0 ]] && mapfile -t files < <(git ls-files --cached --others --exclude-standard -- '*.cc' '*.h' '*.cu' '*.cuh')
[[ ${#files[@]} -eq 0 ]] || clang-format-14 -i "${files[@]}"
