#!/usr/bin/env bash
# ./dev clean [PRESET…]: removes these build folders, or all of them.
set -euo pipefail

if [[ $# -eq 0 ]]; then
  rm -rf build
  exit
fi
for preset in "$@"; do
  if [[ $preset == */* || $preset == .* ]]; then
    echo "clean: '$preset' is not the name of a preset" >&2
    exit 2
  fi
  rm -rf "build/$preset"
done
