# shellcheck shell=bash
# Sourced. ensure_peers: the libraries that the benchmarks compare with, in build/peers, a Python of its own. One that
# cannot be had is not there, which the benchmarks say: nothing here fails.

ensure_peers() {
  local folder=build/peers wanted=tests/bench/peers/requirements stamp
  stamp=$(cat "$wanted"/*.txt | sha256sum)
  [[ -f $folder/installed && $(<"$folder/installed") == "$stamp" ]] && return 0
  echo "== installing the benchmarks' peers (some gigabytes) into $folder"
  if [[ ! -x $folder/bin/python ]] && ! /usr/bin/python3 -m venv "$folder"; then
    echo "peers: no Python of their own can be made; python3-venv is missing?" >&2
    return 0
  fi
  local list missing=0
  for list in "$wanted"/*.txt; do
    # The lists are complete, so that nothing is installed that only other machines need.
    if ! "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --requirement "$list"; then
      echo "peers: not all of $list could be installed" >&2
      missing=1
    fi
  done
  [[ $missing == 1 ]] || echo "$stamp" >"$folder/installed"
}
