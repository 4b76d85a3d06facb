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
grep -q '^losses differ by .* sums being in another order' log || fail "does not say how far losses differ"
grep -q '^largest difference of 754 parameters: ' log || fail "does not name the largest difference"
expect_failure "losses differ by" launch 3 "$annulet" verify --config run.toml --tolerance 0

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
expect_success launch 3 "$annulet" train --config run.toml --check-replicas 3 --zero 1

# Any number of ranks writes the same file, at any stage, and the run says what that costs.
expect_success "$annulet" train --config run.toml --reproducible 8 --out one
for ranks in 2 3; do
  expect_success launch $ranks "$annulet" train --config run.toml --reproducible 8 --bucket 1kB --out "on-$ranks"
  grep -q '^sums  *in one fixed tree over 8 micro-shards' log || fail "does not tell of the tree"
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
expect_failure "reproducible = 65 is out of range" "$annulet" train --config run.toml --reproducible 65
expect_failure "reproducible = 8 with algorithm = direct" "$annulet" train --config run.toml --reproducible 8 --algorithm direct
expect_failure "reproducible = 8 with compress = bf16" "$annulet" train --config run.toml --reproducible 8 --compress bf16
expect_failure "with accumulate = 5" launch 2 "$annulet" train --config run.toml --reproducible 8 --accumulate 5
expect_failure "--tolerance with --reproducible" "$annulet" verify --config run.toml --reproducible 8 --tolerance 1
expect_failure "--steps 0 trains nothing" "$annulet" verify --config run.toml --steps 0
expect_success "$annulet" train --config run.toml --record-profile --out profiled
expect_failure "a reproducible step cannot be predicted" \
  launch 2 "$annulet" train --config run.toml --batch 40 --reproducible 8 --predict-from profiled/profile.json
