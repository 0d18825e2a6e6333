#!/usr/bin/env bash
# ./dev setup [GROUP…]: installs the packages of these groups of packages.txt.
set -euo pipefail
source deploy/dev/packages.sh

groups=("$@")
[[ $# -eq 0 ]] && groups=(build test demo)
for group in "${groups[@]}"; do
  if [[ -z $(packages_of "$group") ]]; then
    echo "setup: deploy/dev/packages.txt has no group '$group'" >&2
    exit 2
  fi
done
ensure_packages "${groups[@]}"
echo "All packages of ${groups[*]} are installed."
