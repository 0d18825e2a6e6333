#!/usr/bin/env bash
# ./dev format [FILE…]: clang-format of C++ sources, in place.
set -euo pipefail
source deploy/dev/packages.sh

command -v clang-format-14 >/dev/null || ensure_packages check
files=("$@")
[[ $# -eq 0 ]] && mapfile -t files < <(git ls-files --cached --others --exclude-standard -- '*.cc' '*.h' '*.cu' '*.cuh')
sources=()
for file in "${files[@]}"; do
  # It takes any other text for C++, and tears it apart.
  if [[ $file =~ \.(cc|h|cu|cuh)$ ]]; then sources+=("$file"); else echo "$file: left as it is, since it is not C++" >&2; fi
done
[[ ${#sources[@]} -eq 0 ]] || clang-format-14 -i "${sources[@]}"
