#!/usr/bin/env bash
# deploy/dev/try_packages.sh: makes the Debian packages, and tries them in a Debian 12 that has nothing else.
#
# There `tensord` alone must bring all that server and tensordctl need, and `libtensord-client-dev` all that an outside project
# needs beside a compiler, with CMake and without; the project must get its result from the server, and removing the packages
# must leave nothing but the settings. Needs root and debootstrap. MIRROR=URL names another Debian mirror; BARE_ROOT=FOLDER
# keeps the bare system there for the next trial; PACKAGES=FOLDER takes the packages that are there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source deploy/dev/packages.sh
source deploy/dev/builds.sh

packages=${PACKAGES:-$PWD/build/package/packages}
work=$(mktemp --directory --tmpdir tensord-packages.XXXXXX)
bare=${BARE_ROOT:-$work/bare}
root=$work/root
trap 'rm -rf "$work"' EXIT

make_packages() {
  ensure_packages build packages
  build_preset package tensord_installation
  rm -rf "$packages"
  cpack --config build/package/CPackConfig.cmake -B "$packages"
}

# Runs the script of standard input in the system. The mounts live in a namespace of their own and vanish with it, and so do processes that are left.
inside() {
  local script
  script=$(cat)
  unshare --mount --pid --fork --mount-proc="$root/proc" \
    chroot "$root" env --ignore-environment HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
    PATH=/usr/sbin:/usr/bin:/sbin:/bin bash -euo pipefail -c "$script" </dev/null
}

[[ -n ${PACKAGES:-} ]] || make_packages
if [[ ! -x $bare/bin/bash ]]; then
  mkdir -p "$bare"
  debootstrap --variant=minbase bookworm "$bare" ${MIRROR:+"$MIRROR"}
fi
cp --archive "$bare" "$root"
cp /etc/resolv.conf "$root/etc/resolv.conf"
mkdir -p "$root/srv/packages"
find "$packages" -maxdepth 1 -name '*.deb' -exec cp -t "$root/srv/packages" {} +
cp -r tests/packages/outside "$root/srv/outside"

echo "== the server's package alone"
inside <<'INSIDE'
apt-get -qq update
apt-get -qq install --yes --no-install-recommends /srv/packages/tensord_*.deb >/dev/null
tensord --version
tensord --config=/etc/tensord/tensord.textproto --check-config
tensordctl help >/dev/null
for file in /usr/lib/systemd/system/tensord.service /usr/share/doc/tensord/third-party/grpc.txt; do test -s "$file"; done
INSIDE

echo "== an outside project with the packages of the client"
inside <<'INSIDE'
apt-get -qq install --yes --no-install-recommends /srv/packages/libtensord-client*.deb >/dev/null
apt-get -qq install --yes --no-install-recommends g++ cmake make pkg-config >/dev/null
cd /srv/outside
for way in find_package pkg_config; do
  cmake -S . -B "/tmp/$way" -DWAY="$way" -DCMAKE_CXX_STANDARD=20 -DCMAKE_CXX_EXTENSIONS=OFF >/dev/null
  cmake --build "/tmp/$way"
done
tensord --listen=unix:/tmp/socket --log-level=warning >/tmp/listening &
server=$!
until grep --quiet "listening grpc" /tmp/listening; do kill -0 "$server"; sleep 0.1; done
for way in find_package pkg_config; do "/tmp/$way/outside" unix:/tmp/socket; done
kill -TERM "$server"
wait "$server"
INSIDE

echo "== the packages are removed"
inside <<'INSIDE'
apt-get -qq remove --yes tensord libtensord-client-dev libtensord-client >/dev/null
test -e /etc/tensord/tensord.textproto
apt-get -qq purge --yes tensord >/dev/null
left=$(find / -xdev -name "*tensord*" -not -path "/srv/*" -not -path "/tmp/*" -not -path "/proc/*" -not -path "/var/lib/*" -not -path "/var/log/*" -not -path "/var/cache/*")
test -z "$left" || { echo "left behind: $left" >&2; exit 1; }
INSIDE
echo "== the packages work in a bare Debian 12"
