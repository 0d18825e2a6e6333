#!/usr/bin/env bash
# ./dev update-golden: writes what the golden tests and the generated pages give now over what is expected of them.
# Read `git diff` before you commit: every changed line is a change that users see.
set -euo pipefail
source deploy/dev/packages.sh
source deploy/dev/builds.sh
source deploy/dev/generated_pages.sh

write_page() {
  local page=$1
  shift
  "$@" >"$page.new" && mv "$page.new" "$page"
}

ensure_packages build test
build_preset release
# A golden test with this variable writes its expected files, and fails only where it could not run.
TENSORD_UPDATE_GOLDEN=1 ctest --test-dir build/release --output-on-failure -L golden
for_each_generated_page write_page
git -c safe.directory='*' diff --stat -- tests docs 2>/dev/null || true
