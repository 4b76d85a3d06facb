#!/usr/bin/env bash
# Makes sure that everything needed to build, test and run is there. Installs what is missing on Debian and Ubuntu, as
# root or through sudo; changes nothing and needs no rights where it is all found already (packages, modules, Spack).
set -euo pipefail

packages=(g++ cmake ninja-build openmpi-bin libopenmpi-dev libeigen3-dev libgtest-dev libgmock-dev libcli11-dev
          libfmt-dev nlohmann-json3-dev zlib1g-dev)
# What configs/ trains on: the file, and the package that has it.
datasets=(/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz=dataset-fashion-mnist
          /usr/share/doc/jargon-text/jargon.txt.gz=jargon-text)

installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

missing=()
for package in "${packages[@]}"; do installed "$package" || missing+=("$package"); done

# What counts is what CMake finds, wherever it came from.
found_by_cmake() {
  command -v cmake >/dev/null && command -v mpiexec >/dev/null || return 1
  local folder status=0
  folder=$(mktemp -d)
  cat >"$folder/CMakeLists.txt" <<'EOF'
cmake_minimum_required(VERSION 3.22)
project(probe LANGUAGES CXX)
find_package(MPI REQUIRED COMPONENTS CXX)
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
foreach(package fmt nlohmann_json ZLIB CLI11 Threads GTest)
  find_package(${package} REQUIRED)
endforeach()
if(NOT TARGET GTest::gmock)
  message(FATAL_ERROR "GoogleMock is missing")
endif()
EOF
  cmake -S "$folder" -B "$folder/build" >/dev/null 2>&1 || status=1
  rm -rf -- "$folder"
  return $status
}

if [ ${#missing[@]} -gt 0 ] && found_by_cmake; then missing=(); fi
data_only=$([ ${#missing[@]} -eq 0 ] && echo yes || echo no)
for dataset in "${datasets[@]}"; do [ -e "${dataset%%=*}" ] || missing+=("${dataset#*=}"); done
[ ${#missing[@]} -gt 0 ] || exit 0

# Data are needed by the configurations that train on them, not by the build.
go_without_data() {
  echo "setup: data sets were not found (Debian packages ${missing[*]}); training on them will be refused." >&2
  exit 0
}

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  # Without a terminal a question for a password would wait for ever.
  if [ -t 0 ]; then as_root=(sudo); else as_root=(sudo -n); fi
fi
if ! command -v apt-get >/dev/null || ! ${as_root[@]+"${as_root[@]}"} true 2>/dev/null; then
  if [ "$data_only" = yes ]; then go_without_data; fi
  echo "setup: missing: ${missing[*]} (installing needs apt-get and root or sudo). Ask for these packages," \
       "or load modules or a Spack environment in which CMake finds MPI, Eigen3, fmt, nlohmann_json, ZLIB, CLI11, GTest." >&2
  exit 1
fi

apt() {
  ${as_root[@]+"${as_root[@]}"} env DEBIAN_FRONTEND=noninteractive \
    apt-get -qq -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@"
}

echo "== installing ${missing[*]}"
log=$(mktemp)
trap 'rm -f -- "$log"' EXIT
if ! { apt update && apt install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1 </dev/null; then
  if [ "$data_only" = yes ]; then go_without_data; fi
  cat -- "$log" >&2
  echo "setup: apt-get could not install: ${missing[*]} (its messages are above)." >&2
  exit 1
fi
