#!/usr/bin/env bash
# The stages of ZeRO as a person uses them: the same run, what is held and sent, and a model that only stage 3 has room
# for.
# shellcheck source=tests/support/command.sh
source "$ANNULET_SOURCE/tests/support/command.sh"

value() { sed -n "s/^ *\"$2\": \(.*[^,]\),\{0,1\}\$/\1/p" "$1/summary.json" | head -n 1; }

# 1,000,000 float parameters with Adam on 4 ranks.
cat >million.toml <<'EOF'
steps = 3
batch = 8
driver = "polling"
bucket = "1MB"

[model]
widths = [999, 1000]

[optimizer]
kind = "adam"
lr = 0.001

[data]
kind = "synthetic"
samples = 32
test_samples = 8
EOF
stage=0
for states in "16 MB" "10 MB" "7 MB" "4 MB"; do
  expect_success launch 4 "$annulet" train --config million.toml --machine ethernet-1g --zero $stage --out stage$stage
  grep -Eq "= model states +$states +$states\$" log || fail "stage $stage does not take $states of model states"
  traffic=$((stage == 3 ? 3 : 2))
  [ "$(value stage$stage wire_bytes_per_step)" -eq $((traffic * 3 * 4000000)) ] || fail "stage $stage sent other bytes"
  grep -q "^exposed: .* of gradients" log || fail "stage $stage does not say what it waited for"
  stage=$((stage + 1))
done
for stage in 1 2; do
  cmp -s stage0/weights.safetensors stage$stage/weights.safetensors || fail "stage $stage gives other weights"
done
grep -q 'warning   bucket = 1 MB is of no use: at stage 3 a bucket is a layer' log || fail "the bucket is ignored in silence"
[ "$(value stage3 accuracy)" = "$(value stage0 accuracy)" ] || fail "stage 3 evaluates to something else"

# Weights of stage 3 go on at stage 0.
expect_success "$annulet" train --config million.toml --init stage3/weights.safetensors --steps 0 --out again
cmp -s stage3/weights.safetensors again/weights.safetensors || fail "the weights of stage 3 are not read as they were"

# A gpt under a limit on each rank's data: 5.3 million parameters are 85 MB of states at stage 0.
cat >large.toml <<'EOF'
steps = 2
batch = 4

[model]
kind = "gpt"
vocabulary = 64
context = 16
layers = 12
heads = 4
width = 192
recompute = true

[optimizer]
kind = "adam"
lr = 0.001

[data]
kind = "synthetic"
samples = 16
EOF
limited() {
  launch 4 bash -c "ulimit -d $((80 * 1024)) && exec \"\$0\" \"\$@\"" "$annulet" train --config large.toml \
    --machine ethernet-1g "$@"
}
expect_failure "of optimiser state (a limit of 83.89 MB on this process's data). Try --zero 3, which shares" limited --zero 0
expect_success limited --zero 3
grep -q "= model states" log || fail "stage 3 does not account for its memory"
