# shellcheck shell=bash
# Sourced by the other scripts: where things are, how to build, how to launch, and on which network.
#   ANNULET_BUILD   build folder, default build/ (a relative path counts from the repository's root)
set -euo pipefail

root=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
cd -- "$root"
build=${ANNULET_BUILD:-build}
cores=$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)

say() { printf '== %s\n' "$*"; }
die() { printf '%s\n' "$*" >&2; exit 1; }

# cached NAME: a variable of the build folder's CMake cache.
cached() { sed -n "s/^$1:[^=]*=//p" "$build/CMakeCache.txt"; }

# Output of a step that matters only when it fails.
quietly() {
  local log
  log=$(mktemp) || return
  if "$@" >"$log" 2>&1; then rm -f -- "$log"; return 0; fi
  cat -- "$log" >&2
  rm -f -- "$log"
  return 1
}

# configure [CMake arguments...]
configure() {
  local generator=()
  # CMake refuses a cache that was made for a copy of this repository elsewhere.
  if [ -f "$build/CMakeCache.txt" ] && [ "$(cached CMAKE_HOME_DIRECTORY)" != "$root" ]; then
    rm -rf -- "$build/CMakeCache.txt" "$build/CMakeFiles"
  fi
  if [ ! -f "$build/CMakeCache.txt" ] && [ -z "${CMAKE_GENERATOR:-}" ] && command -v ninja >/dev/null; then
    generator=(-G Ninja)
  fi
  quietly cmake -S . -B "$build" ${generator[@]+"${generator[@]}"} "$@"
}

# compile TARGETS...: Ninja's one line of progress on a terminal, nothing elsewhere unless it fails.
compile() {
  local command=(cmake --build "$build" --parallel "$cores" --target "$@")
  if [ -t 1 ]; then "${command[@]}"; else quietly "${command[@]}"; fi
}

# configure_and_build [CMake arguments...]
configure_and_build() { configure "$@" && compile all; }

# launch N COMMAND...: on N ranks, by the launcher of the MPI that CMake found.
launch() {
  local ranks=$1
  shift
  bash scripts/mpirun.sh "$(cached MPIEXEC_EXECUTABLE)" "$ranks" 0 "$@"
}

# A network is an emulated link (alpha=1ms,bandwidth=250MB/s) or the rate of the cards of a cluster in a box (1gbit, as root).
is_emulated() { [[ $1 == *=* ]]; }

# network_up NETWORK HOSTS; a script that calls it calls network_down when it ends.
network_is_up=
network_up() {
  if is_emulated "$1"; then return; fi
  bash scripts/cluster.sh up "$2" "$1" >&2
  network_is_up=yes
}
network_down() {
  if [ -n "$network_is_up" ]; then bash scripts/cluster.sh down; fi
  network_is_up=
}

# on NETWORK RANKS COMMAND...: a command of annulet's that takes --emulate, there.
on() {
  local network=$1 ranks=$2
  shift 2
  if is_emulated "$network"; then
    launch "$ranks" "$@" --emulate "$network"
  else
    SECONDS_MOST=${SECONDS_MOST:-1800} bash scripts/cluster.sh run "$ranks" "$@"
  fi
}
