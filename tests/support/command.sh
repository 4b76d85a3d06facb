# shellcheck shell=bash
# Sourced by the scripts of annulet_command_test. ANNULET_PROGRAM, ANNULET_MPIEXEC, ANNULET_WIRE_COUNTER and
# ANNULET_SOURCE are set by ctest. Gives a folder of its own ($work, also the current one, removed at the end) and:
#   "$annulet" ...                 the program
#   launch N COMMAND...             on N ranks; a job that hangs for a minute is ended and fails
#   counted N PREFIX COMMAND...     the same under the wire counter, which writes PREFIX.RANK
#   expect_success COMMAND...       output in $work/log, shown when it fails
#   expect_failure TEXT COMMAND...  must fail and say TEXT
#   fail MESSAGE
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
cd -- "$work"
export annulet=$ANNULET_PROGRAM

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  if [ -f "$work/log" ]; then cat -- "$work/log" >&2; fi
  exit 1
}

launch() { bash "$ANNULET_SOURCE/scripts/mpirun.sh" "$ANNULET_MPIEXEC" "$1" "${LAUNCH_SECONDS:-60}" "${@:2}"; }

# The counter by name: LD_PRELOAD takes a space in a path for the end of it.
counted() {
  launch "$1" env LD_LIBRARY_PATH="$(dirname -- "$ANNULET_WIRE_COUNTER"):${LD_LIBRARY_PATH:-}" \
    LD_PRELOAD="$(basename -- "$ANNULET_WIRE_COUNTER")" ANNULET_WIRE_COUNT_FILE="$2" "${@:3}"
}

expect_success() { "$@" >"$work/log" 2>&1 || fail "exit code $?: $*"; }

expect_failure() {
  local text=$1
  shift
  if "$@" >"$work/log" 2>&1; then fail "succeeded, though it should not: $*"; fi
  grep -qF -- "$text" "$work/log" || fail "did not say '$text': $*"
}
