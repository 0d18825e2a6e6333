# shellcheck shell=bash
# Sourced. build_preset PRESET [TARGET…]: configures build/PRESET where that is due, and builds the targets (default: all).

job_count() {
  [[ -n ${JOBS:-} ]] && { echo "$JOBS"; return; }
  # The heaviest translation units take about 1 GiB each.
  local cores memory_gib
  cores=$(nproc)
  memory_gib=$(awk '/^MemTotal/ { print int($2 / 1048576) }' /proc/meminfo)
  ((memory_gib < 1)) && memory_gib=1
  echo $((cores < memory_gib ? cores : memory_gib))
}

configure_preset() {
  local preset=$1 ninja_file=build/$1/build.ninja
  # Ninja runs CMake again by itself where a CMakeLists.txt has changed, but does not know of the presets.
  [[ -f $ninja_file && ! CMakePresets.json -nt $ninja_file ]] && return 0
  mkdir -p "build/$preset"
  if ! cmake --preset "$preset" >"build/$preset/configure.log" 2>&1; then
    cat "build/$preset/configure.log" >&2
    return 1
  fi
}

build_preset() {
  local preset=$1 start=$SECONDS
  shift
  configure_preset "$preset"
  echo "== building $preset${*:+ ($*)}"
  NINJA_STATUS='[%f/%t %es] ' ninja -C "build/$preset" -j "$(job_count)" "$@"
  echo "== built $preset in $((SECONDS - start)) s"
}
