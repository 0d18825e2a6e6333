#!/usr/bin/env bash
# Sourced or run. ensure_sources: the archives of deploy/dev/sources.txt, checked and unpacked, in build/sources/NAME-VERSION,
# where CMake finds them. What is there already is not asked for again; with the archives themselves laid into
# build/sources/archives no registry is asked at all.

# pip asks a source archive's own build system for its name before it keeps the archive. This one answers instead, so that
# nothing of the archive is run, and nothing else is downloaded.
write_build_system() {
  local folder=$1 name=$2 version=$3
  mkdir -p "$folder/scikit_build_core"
  : >"$folder/scikit_build_core/__init__.py"
  cat >"$folder/scikit_build_core/build.py" <<PYTHON
import os


def prepare_metadata_for_build_wheel(directory, config_settings=None):
    info = "$name-$version.dist-info"
    os.makedirs(os.path.join(directory, info), exist_ok=True)
    with open(os.path.join(directory, info, "METADATA"), "w") as metadata:
        metadata.write("Metadata-Version: 2.1\nName: $name\nVersion: $version\n")
    return info


def build_wheel(directory, config_settings=None, metadata_directory=None):
    raise NotImplementedError("only the sources are wanted")
PYTHON
}

download_source() {
  local name=$1 version=$2 sha256=$3 archives=$4 python=python3 stub
  stub=$(mktemp --directory)
  write_build_system "$stub" "$name" "$version"
  echo "$name==$version --hash=sha256:$sha256" >"$stub/requirements.txt"
  "$python" -m pip --version >/dev/null 2>&1 || python=/usr/bin/python3
  if ! PYTHONPATH=$stub "$python" -m pip download --quiet --disable-pip-version-check --no-deps --no-binary :all: \
    --no-build-isolation --require-hashes --dest "$archives" --requirement "$stub/requirements.txt" >"$stub/log" 2>&1; then
    cat "$stub/log" >&2
    echo "sources: $name-$version.tar.gz could not be had. Lay it into $archives, and try again" >&2
    rm -rf "$stub"
    return 1
  fi
  rm -rf "$stub"
}

ensure_sources() {
  local folder=build/sources archives=build/sources/archives name version sha256 licence archive unpacked
  while read -r name version sha256 licence _; do
    [[ -z $name || $name == \#* ]] && continue
    [[ -f $folder/$name-$version/.unpacked && $(<"$folder/$name-$version/.unpacked") == "$sha256" ]] && continue
    archive=$archives/$name-$version.tar.gz
    mkdir -p "$archives"
    if [[ ! -f $archive ]]; then
      echo "== fetching the sources of $name $version ($licence)"
      download_source "$name" "$version" "$sha256" "$archives" || return 1
    fi
    if ! echo "$sha256  $archive" | sha256sum --check --status; then
      echo "sources: $archive is not the archive that deploy/dev/sources.txt names. Remove it, and try again" >&2
      return 1
    fi
    # Unpacked beside and moved, so that a folder is either whole or absent, even where two builds do this at once.
    unpacked=$(mktemp --directory "$folder/.unpacking.XXXXXX")
    tar --extract --gzip --file "$archive" --directory "$unpacked" --no-same-owner
    echo "$sha256" >"$unpacked/$name-$version/.unpacked"
    rm -rf "${folder:?}/$name-$version"
    mv "$unpacked/$name-$version" "$folder/" 2>/dev/null || true
    rm -rf "$unpacked"
  done <deploy/dev/sources.txt
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  set -euo pipefail
  cd "$(dirname "$0")/../.."
  ensure_sources
fi
