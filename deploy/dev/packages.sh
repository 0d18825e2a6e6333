# shellcheck shell=bash
# Sourced. ensure_packages GROUP…: installs the packages of deploy/dev/packages.txt that are missing.

packages_of() {
  local group architecture
  architecture=$(dpkg --print-architecture 2>/dev/null || true)
  for group in "$@"; do
    awk -v group="$group" -v here="$group/$architecture" '$1 == group || $1 == here { print $2 }' deploy/dev/packages.txt
  done | sort -u
}

missing_packages() {
  local package
  for package in "$@"; do
    [[ $(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || echo "$package"
  done
}

as_root() {
  if [[ $(id -u) -eq 0 ]]; then
    "$@"
  elif command -v sudo >/dev/null && [[ -t 0 ]]; then
    sudo "$@"
  elif command -v sudo >/dev/null; then
    sudo --non-interactive "$@"
  else
    return 127
  fi
}

ensure_packages() {
  [[ ${TENSORD_SKIP_SETUP:-} == 1 ]] && return 0
  local wanted missing
  mapfile -t wanted < <(packages_of "$@")
  if ! command -v dpkg-query >/dev/null; then
    echo "This is no Debian system. Install what deploy/dev/packages.txt lists, then set TENSORD_SKIP_SETUP=1." >&2
    return 1
  fi
  mapfile -t missing < <(missing_packages "${wanted[@]}")
  [[ ${#missing[@]} -eq 0 ]] && return 0

  echo "Installing ${#missing[@]} packages: ${missing[*]}"
  local apt=(env DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 apt-get -o DPkg::Lock::Timeout=300 -qq)
  # A source that cannot be reached is no reason to stop: the install says whether what it needs is there.
  as_root "${apt[@]}" update || true
  if ! as_root "${apt[@]}" install --yes --no-install-recommends "${missing[@]}" >/dev/null; then
    echo "Could not install them. As root: apt-get install --no-install-recommends ${missing[*]}" >&2
    return 1
  fi
}
