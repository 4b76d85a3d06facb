#!/usr/bin/env bash
# Whatever happens to a rank, the whole job ends: soon, not with 0, and saying who and when.
# shellcheck source=tests/support/command.sh
source "$ANNULET_SOURCE/tests/support/command.sh"

cat >run.toml <<'EOF'
steps = 100000
batch = 12
deadline = "5s"

[model]
widths = [20, 30, 4]

[data]
kind = "synthetic"
samples = 60
EOF

# ends_with TEXT RANKS SECONDS ARGUMENTS...
ends_with() {
  local text=$1 ranks=$2 most=$3 begin=$SECONDS
  shift 3
  expect_failure "$text" launch "$ranks" "$annulet" train --config run.toml "$@"
  [ $((SECONDS - begin)) -lt "$most" ] || fail "took $((SECONDS - begin)) s: $*"
}

for driver in polling thread blocking; do
  ends_with "rank 1: step 2: injected failure" 3 10 --driver $driver --inject throw:rank=1,step=2
  ends_with "rank 2, step 3: loss or gradients are not finite" 3 10 --driver $driver --inject nan:rank=2,step=3
  [ "$(grep -c "not finite" "$work/log")" -eq 1 ] || fail "said more than once"
done
ends_with "from rank 1" 3 10 --driver polling --inject stop:rank=1,step=4
grep -q "step 4" "$work/log" || fail "the step is not named"
grep -q "nothing has moved for 5" "$work/log" || fail "the deadline is not named"
ends_with "from rank 0" 2 10 --driver thread --inject stop:rank=0,step=4

# All ranks at once, and in the first step: whoever is first to say it.
ends_with ": step 2: injected failure" 3 10 --inject throw:rank=all,step=2
ends_with "step 0" 4 10 --inject throw:rank=all,step=0

# By every algorithm: the collective, the rank and the step. All at once, since they mostly wait.
algorithms=(ring recursive_doubling recursive_halving_doubling binomial_tree pipelined_tree direct)
stopped() { ! launch 3 "$annulet" train --config run.toml --deadline 1s --inject stop:rank=2,step=4 "$@" >"$work/$1" 2>&1; }
begin=$SECONDS
jobs=()
for algorithm in "${algorithms[@]}"; do
  stopped --algorithm="$algorithm" &
  jobs+=($!)
done
stopped --zero=1 &
jobs+=($!)
for job in "${jobs[@]}"; do wait "$job" || fail "a run with a stopped rank succeeded"; done
[ $((SECONDS - begin)) -lt 25 ] || fail "runs with a stopped rank took $((SECONDS - begin)) s"
for log in "${algorithms[@]/#/$work/--algorithm=}" "$work/--zero=1"; do
  grep -qE "step 4: .*nothing has moved for 1.* s \((all_reduce|reduce_scatter|all_gather) of (gradient|weight) bucket [0-9]+ of [0-9]+: [0-9]+ of [0-9]+ steps done, waiting for [0-9]+ elements .*rank [0-9]" "$log" ||
    { cat "$log" >"$work/log"; fail "$log does not name collective, rank and step"; }
done

# A rank that is stopped from outside, in the middle of whatever collective it runs.
launch 3 "$annulet" bench --collective all --algorithm all --max-bytes 64KiB --deadline 1s >"$work/log" 2>&1 &
job=$!
sleep 2
rank=$(pgrep -n -P "$(pgrep -P "$job")" || true)  # the launcher's youngest child
[ -n "$rank" ] || fail "no rank to stop was found"
kill -STOP "$rank"
begin=$SECONDS
if wait "$job"; then fail "a benchmark with a stopped rank succeeded"; fi
[ $((SECONDS - begin)) -lt 10 ] || fail "a benchmark with a stopped rank took $((SECONDS - begin)) s"
grep -qE "nothing has moved for|has waited" "$work/log" || fail "the deadline is not named"

# A slow rank is no failure.
expect_success launch 2 "$annulet" train --config run.toml --steps 8 --inject slow:rank=1,step=2
