#!/bin/sh
# run_suites.sh NAME SUITES TEST…: the cases of a GoogleTest binary that a filter names, "Suite.*:…". Those of the
# environment's filter instead, where ./dev test wants single ones. Where it wants reports, this one's has NAME in its own.
set -eu
export GTEST_FILTER="${GTEST_FILTER:-$2}"
report=$(basename "$3")_$1.json
shift 2
[ -z "${TENSORD_REPORTS:-}" ] || export GTEST_OUTPUT="json:$TENSORD_REPORTS/$report"
exec "$@"
