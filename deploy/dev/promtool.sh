# shellcheck shell=bash
# Sourced. ensure_promtool: unpacks promtool of Debian's package prometheus into build/tools, where there is none. Installing
# the package would start its daemon. Tests that need the tool are skipped without it.

ensure_promtool() {
  [[ ${TENSORD_SKIP_SETUP:-} == 1 ]] && return 0
  command -v promtool >/dev/null && return 0
  [[ -x build/tools/promtool ]] && return 0
  local folder
  folder=$(mktemp --directory)
  mkdir -p build/tools
  if (cd "$folder" && apt-get -qq download prometheus >/dev/null 2>&1) &&
    dpkg-deb --fsys-tarfile "$folder"/prometheus_*.deb | tar --extract --directory="$folder" ./usr/bin/promtool; then
    mv "$folder/usr/bin/promtool" build/tools/promtool
  else
    echo "There is no promtool, and Debian's package prometheus cannot be fetched: the alerts are not tested." >&2
  fi
  rm -rf "$folder"
}
