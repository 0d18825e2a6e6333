#!/bin/sh
# run_shard.sh INDEX COUNT TEST…: every COUNT-th case of a GoogleTest binary, from INDEX on, which begins at 1. Where
# ./dev test wants reports, this one's has a name of its own: the shards run at once.
set -eu
export GTEST_SHARD_INDEX=$(($1 - 1)) GTEST_TOTAL_SHARDS="$2"
report=$(basename "$3")_$1.json
shift 2
[ -z "${TENSORD_REPORTS:-}" ] || export GTEST_OUTPUT="json:$TENSORD_REPORTS/$report"
exec "$@"
