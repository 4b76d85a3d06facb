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

# A slow rank is no failure.
expect_success launch 2 "$annulet" train --config run.toml --steps 8 --inject slow:rank=1,step=2
