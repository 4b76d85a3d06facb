#!/usr/bin/env bash
# Everything that is tested: unit and MPI tests, formatting, the installed package, and once more under sanitizers.
# shellcheck source=scripts/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT

# Entries name the cores they need (PROCESSORS), so that two at a time never overload two cores.
run_ctest() { ctest --test-dir "$build" -j 2 --output-on-failure --timeout 300 --no-tests=error "$@"; }

check_format() {
  if ! command -v clang-format >/dev/null; then say "formatting not checked: clang-format is not installed"; return; fi
  say "formatting"
  find include src tests \( -name '*.hpp' -o -name '*.cpp' \) -print0 | xargs -0 clang-format --dry-run -Werror
}

# A stranger's project: against the installed package, and with this repository as a part of it.
check_consumer() {
  say "a project that uses the installed package"
  quietly cmake --install "$build" --prefix "$work/prefix"
  quietly cmake -S tests/consumer -B "$work/consumer" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_BUILD_TYPE=Release
  quietly cmake --build "$work/consumer"
  "$work/consumer/consumer"
  (cd / && quietly "$work/prefix/bin/annulet" plan deck)  # with the configs that were installed

  say "a project that has this one as a subfolder"
  quietly cmake -S tests/consumer -B "$work/nested" -DANNULET_SOURCE="$root"
  quietly cmake --build "$work/nested" --target annulet_base
}

bash scripts/setup.sh
say "building everything in $build/"
configure_and_build -DCMAKE_BUILD_TYPE=Release -DANNULET_TESTS=ON -DANNULET_UNITY=ON
say "tests"
run_ctest
check_format
check_consumer

say "the same code under AddressSanitizer and UndefinedBehaviorSanitizer"
build=$build-asan
# Lean: no vector instructions, whose Eigen code takes long to compile when instrumented.
configure -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0 -DANNULET_ARCH= -DANNULET_SANITIZE=address,undefined -DANNULET_UNITY=ON \
  -DANNULET_TESTS=ON
compile annulet_sanitized_tests
run_ctest -L sanitize
