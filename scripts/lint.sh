#!/usr/bin/env bash
# clang-tidy over the sources, with the checks of .clang-tidy. A few minutes; scripts/test.sh checks the formatting.
#   lint.sh [FILE...]      default: every source of src/
# shellcheck source=scripts/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"
command -v clang-tidy >/dev/null || die "lint: clang-tidy is not installed (Debian package clang-tidy)."

configure -DCMAKE_BUILD_TYPE=Release -DCMAKE_EXPORT_COMPILE_COMMANDS=ON
if [ $# -eq 0 ]; then
  mapfile -t files < <(find src -name '*.cpp' ! -name cpu_check.cpp | sort)
  set -- "${files[@]}"
fi
printf '%s\0' "$@" | xargs -0 -n 1 -P "$cores" clang-tidy -p "$build" --quiet --extra-arg=-Wno-unknown-warning-option
