#!/usr/bin/env bash
# deploy/dev/try_bare.sh [COMMAND…]: does ./dev COMMAND (default: demo) work on a Debian 12 that has only bash and apt?
#
# Makes such a system with debootstrap, clones the last commit into it and runs the command there, twice: the second
# time shows what a repetition costs. Needs root, debootstrap and git. MIRROR=URL names another Debian mirror;
# BARE_ROOT=FOLDER keeps the system there for the next trial, otherwise it is removed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

command=("${@:-demo}")
root=${BARE_ROOT:-$(mktemp --directory --tmpdir tensord-bare.XXXXXX)}
[[ -n ${BARE_ROOT:-} ]] || trap 'rm -rf "$root"' EXIT

if [[ ! -x $root/bin/bash ]]; then
  mkdir -p "$root"
  debootstrap --variant=minbase bookworm "$root" ${MIRROR:+"$MIRROR"}
fi
cp /etc/resolv.conf "$root/etc/resolv.conf"
rm -rf "$root/srv/tensord"
git clone --quiet "file://$PWD" "$root/srv/tensord"

# The mounts live in a namespace of their own and vanish with it.
inside() {
  unshare --mount --pid --fork --mount-proc="$root/proc" \
    chroot "$root" env --ignore-environment HOME=/root PATH=/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin \
    JOBS="${JOBS:-$(nproc)}" bash -c 'cd /srv/tensord && ./dev "$@"' dev "$@" </dev/null
}

for round in first second; do
  start=$SECONDS
  inside "${command[@]}"
  echo "== ./dev ${command[*]}, $round time: $((SECONDS - start)) s"
done
