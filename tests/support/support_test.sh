#!/usr/bin/env bash
# support_test.sh MPIRUN MPIEXEC PROGRAM COUNTER: one rank's failure is everybody's, and the counter counts.
set -euo pipefail
mpirun=$1 mpiexec=$2 program=$3 counter=$4
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
fail() { echo "$*" >&2; cat -- "$work/log" >&2; exit 1; }

run() { bash "$mpirun" "$mpiexec" 3 20 env "${@:2}" "$program" --gtest_also_run_disabled_tests --gtest_filter="*$1*"; }

expect_failure() {
  local began=$SECONDS
  if run "$1" >"$work/log" 2>&1; then fail "$1 passed"; fi
  [ $((SECONDS - began)) -lt 15 ] || fail "$1 took too long"
  grep -q -- "$2" "$work/log" || fail "$1 did not say: $2"
}

expect_failure StopsEveryRankWhenOneFails "does not hold on rank 1"
expect_failure OneRankFailsAlone "this test failed on rank 1"
grep -q '^\[rank 1\].*support_test.cpp' "$work/log" || fail "rank 1 did not print its failure"
expect_failure OneRankThrowsWhileOthersWait '^\[rank 1\].*thrown on purpose'

# By name: LD_PRELOAD takes a space in a path for the end of it.
run SendsAKnownAmount LD_LIBRARY_PATH="$(dirname -- "$counter"):${LD_LIBRARY_PATH:-}" \
  LD_PRELOAD="$(basename -- "$counter")" ANNULET_WIRE_COUNT_FILE="$work/wire" >"$work/log" 2>&1 || fail "run failed"
for rank in 0 1 2; do
  [ "$(cat -- "$work/wire.$rank")" = "rank $rank bytes 8012 messages 2 receives 2" ] || fail "$(cat -- "$work/wire.$rank")"
done
