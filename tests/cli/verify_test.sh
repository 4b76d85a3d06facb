#!/usr/bin/env bash
# annulet verify, and reproducible runs as a person sees them.
# shellcheck source=tests/support/command.sh
source "$ANNULET_SOURCE/tests/support/command.sh"

cat >run.toml <<'EOF'
steps = 12
batch = 20

[model]
widths = [20, 30, 4]
dropout = 0.1

[data]
kind = "synthetic"
samples = 64
test_samples = 32
EOF

same() { cmp -s "$1" "$2" || fail "$1 and $2 differ"; }

# By default the same up to rounding, which is said; a tolerance of nothing is not kept.
expect_success launch 3 "$annulet" verify --config run.toml
grep -q '^losses differ by .* is allowed: sums are in another order' log || fail "does not say how far losses differ"
grep -q '^largest difference of 754 parameters: ' log || fail "does not name the largest difference"
expect_failure ", more than the 0 allowed: sums are in another order" \
  launch 3 "$annulet" verify --config run.toml --tolerance 0
expect_failure "allowed: each rank rounds its own part" \
  "$annulet" verify --config run.toml --compress bf16 --simulate 3 --tolerance 0
expect_failure "allowed: each rank leaves out some of its own gradients" \
  "$annulet" verify --config run.toml --compress topk:16 --simulate 3

# How many steps: those asked for, by steps or epochs, else 20; a run's own configuration file is read.
last_step() { python3 -c "import json; print(json.load(open('answer.json'))['losses'][-1]['step'])"; }
sed '/^steps/d' run.toml >open.toml
for options in "20" "8 --epochs 2" "7 --epochs 2 --steps 7"; do
  read -r -a words <<<"$options"
  expect_success "$annulet" verify --config open.toml "${words[@]:1}" --simulate 2 --json answer.json
  [ "$(last_step)" = "${words[0]}" ] || fail "makes $(last_step) steps instead of $options"
done
expect_success "$annulet" train --config run.toml --steps 3 --out short
expect_success "$annulet" verify --config short/config.toml --simulate 2 --json answer.json
[ "$(last_step)" = 3 ] || fail "makes $(last_step) steps instead of the run's 3"

# The others do not take rank 0 for stopped while it trains alone.
expect_success launch 3 "$annulet" verify --config run.toml --model.widths 20,400,400,4 --batch 600 --data.samples 600 \
  --steps 250 --deadline 1s --tolerance 1

# A reproducible run: the same bits, under mpirun and in threads.
expect_success launch 3 "$annulet" verify --config run.toml --reproducible 8
grep -qx 'identical' log || fail "is not identical under mpirun"
grep -qx 'all 754 parameters are equal' log || fail "does not tell of the parameters"
for ranks in 1 2 7 8; do
  expect_success "$annulet" verify --config run.toml --reproducible 8 --simulate $ranks --driver thread
  grep -qx 'identical' log || fail "is not identical on $ranks simulated ranks"
done
expect_success "$annulet" verify --config run.toml --reproducible 8 --simulate 4 --json answer.json
python3 -c "
import json
answer = json.load(open('answer.json'))
assert all(row['loss'] == row['loss_alone'] for row in answer['losses']), answer
assert [row['step'] for row in answer['losses']] == [1, 12], answer
assert answer['notes'][-1] == 'identical', answer
"

# One bit of one weight on one rank, in the middle of the run.
expect_failure "not identical" launch 3 "$annulet" verify --config run.toml --reproducible 8 --inject flip:rank=1,step=4
expect_failure "step 5: the weights are not the same on all ranks: layers.1.bias on rank 1" \
  launch 3 "$annulet" train --config run.toml --check-replicas 3 --inject flip:rank=1,step=4
expect_failure "step 5: the weights are not the same on all ranks: " \
  launch 3 "$annulet" train --config run.toml --check-replicas 3 --zero 1 --inject flip:rank=1,step=5
expect_success launch 3 "$annulet" train --config run.toml --check-replicas 3 --zero 1

# Whoever fails, mpirun or not: the command, the rank, the step, and 1.
under_mpirun() { launch 3 "$annulet" verify --config run.toml "$@"; }
simulated() { "$annulet" verify --config run.toml --simulate 3 "$@"; }
for how in under_mpirun simulated; do
  expect_failure "annulet verify: reproducible = 2 on 3 ranks" $how --reproducible 2
  expect_failure "annulet verify: rank 1: step 2: injected failure" $how --inject throw:rank=1,step=2
  expect_failure "annulet verify: rank 2, step 3: loss or gradients are not finite" $how --inject nan:rank=2,step=3
done
expect_failure "annulet verify: inject = nan:rank=3,step=3 names no rank" simulated --inject nan:rank=3,step=3
expect_failure "annulet verify: steps = -5 is out of range" simulated --steps -5
code=0
simulated --reproducible 2 2>log || code=$?
[ $code -eq 1 ] || fail "exit code $code instead of 1"

# Any number of ranks writes the same file, at any stage, and the run says what that costs.
expect_success "$annulet" train --config run.toml --reproducible 8 --out one
for ranks in 2 3; do
  expect_success launch $ranks "$annulet" train --config run.toml --reproducible 8 --bucket 1kB --out "on-$ranks"
  grep -qE '^sums  *in one fixed tree over 8 micro-shards.{1,60}$' log || fail "does not tell of the tree in one line"
  grep -q '^reproducible: passes and norm in micro-shards .* x; wire bytes 1\.[03]' log || fail "does not tell the cost"
  grep -q '^  partial sums  ' log || fail "does not count the partial sums"
  same one/weights.safetensors "on-$ranks/weights.safetensors"
done
for stage in 1 2 3; do
  expect_success launch 3 "$annulet" train --config run.toml --reproducible 8 --zero $stage --out stage-$stage
  same one/weights.safetensors stage-$stage/weights.safetensors
done
expect_success launch 3 "$annulet" train --config on-3/config.toml --out again
same one/weights.safetensors again/weights.safetensors

# What makes no sense is refused.
expect_failure "reproducible = 2 on 3 ranks" launch 3 "$annulet" train --config run.toml --reproducible 2
cat >differing.sh <<'EOF'
rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}
"$annulet" verify --config run.toml --data.samples $((100 + rank))
EOF
expect_failure "annulet verify: the options are not the same on all ranks" launch 2 bash differing.sh
expect_failure "reproducible = 65 is out of range" "$annulet" train --config run.toml --reproducible 65
expect_failure "reproducible = 8 with algorithm = direct" "$annulet" train --config run.toml --reproducible 8 --algorithm direct
expect_failure "reproducible = 8 with compress = bf16" "$annulet" train --config run.toml --reproducible 8 --compress bf16
expect_failure "with accumulate = 5" launch 2 "$annulet" train --config run.toml --reproducible 8 --accumulate 5
expect_failure "--tolerance with --reproducible" "$annulet" verify --config run.toml --reproducible 8 --tolerance 1
expect_failure "'-1' is not a number of 0 or more" "$annulet" verify --config run.toml --tolerance -1
expect_failure "--emulate with --simulate" "$annulet" verify --config run.toml --simulate 2 --emulate alpha=1ms,bandwidth=1GB/s
expect_failure "stop:rank=0,step=1 with --simulate" "$annulet" verify --config run.toml --simulate 2 --inject stop:rank=0,step=1
expect_failure "--evaluate-every (verify" "$annulet" verify --config run.toml --evaluate-every 3
expect_failure "a profile is recorded without --reproducible 8 (" \
  "$annulet" train --config run.toml --reproducible 8 --record-profile --out refused
expect_failure "--steps 0 trains nothing" "$annulet" verify --config run.toml --steps 0
expect_success "$annulet" train --config run.toml --record-profile --out profiled
expect_failure "a reproducible step cannot be predicted" \
  launch 2 "$annulet" train --config run.toml --batch 40 --reproducible 8 --predict-from profiled/profile.json
