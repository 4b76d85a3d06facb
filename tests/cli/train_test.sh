#!/usr/bin/env bash
# annulet train as a person uses it: files, restarts from weights, refusals.
# shellcheck source=tests/support/command.sh
source "$ANNULET_SOURCE/tests/support/command.sh"

cat >run.toml <<'EOF'
steps = 12
batch = 16

[model]
widths = [20, 30, 4]

[data]
kind = "synthetic"
samples = 64
test_samples = 32
EOF

value() { sed -n "s/^ *\"$2\": \(.*[^,]\),\{0,1\}\$/\1/p" "$1/summary.json" | head -n 1; }
same() { cmp -s "$1" "$2" || fail "$1 and $2 differ"; }

# A run leaves everything behind, and the same weights for any number of ranks' driver.
expect_success launch 2 "$annulet" train --config run.toml --out two
for file in config.toml steps.jsonl buckets.jsonl summary.json weights.safetensors; do
  [ -s "two/$file" ] || fail "two/$file is missing"
done
[ "$(wc -l <two/steps.jsonl)" -eq 12 ] || fail "steps.jsonl has not a line per step"
[ "$(value two wire_bytes_per_step)" = "$(value two planned_wire_bytes_per_step)" ] || fail "bytes counted are not those planned"
[ "$(value two wire_bytes_per_step)" -eq $((2 * 754 * 4)) ] || fail "wire bytes are not 2 (p-1) M"
for driver in blocking polling thread; do
  expect_success launch 2 "$annulet" train --config run.toml --driver $driver --out "two-$driver"
  same two/weights.safetensors "two-$driver/weights.safetensors"
done

# Buckets by other algorithms; what auto chose is said, and is what the resolved configuration names.
expect_success launch 3 "$annulet" train --config run.toml --algorithm auto --machine ethernet-1g --bucket 1kB --out auto
grep -q 'engine .*(auto: by predicted cost on the machine file)' log || fail "does not say what auto chose"
grep -q '^algorithm = "[a-z_@0-9B]*:[0-9]*B-[0-9]*B' auto/config.toml || fail "the choice is not in the configuration"
expect_success launch 3 "$annulet" train --config auto/config.toml --machine ethernet-1g --out auto-again
same auto/weights.safetensors auto-again/weights.safetensors
expect_success launch 3 "$annulet" train --config run.toml --algorithm binomial_tree --out tree
grep -q 'engine  *binomial_tree;' log || fail "does not name the algorithm"
[ "$(value tree wire_bytes_per_step)" -eq $((4 * 754 * 4)) ] || fail "wire bytes of the tree are not 2 (p-1) M"
expect_failure "all_reduce has no algorithm bruck" "$annulet" train --config run.toml --algorithm bruck

# Compressed gradients: the bytes of the formulas (38 + 2 + 8 + 1 of 754 values, 8 bytes each with its position), the same
# weights with every driver, and what makes no sense is refused.
expect_success launch 2 "$annulet" train --config run.toml --compress bf16 --out narrow
[ "$(value narrow wire_bytes_per_step)" -eq $((2 * 754 * 2)) ] || fail "bf16 does not halve the wire bytes"
expect_success launch 2 "$annulet" train --config run.toml --compress bf16 --zero 1 --out narrow-shards
[ "$(value narrow-shards wire_bytes_per_step)" -eq $((754 * 2 + 754 * 4)) ] || fail "weights do not travel as they are"
same narrow/weights.safetensors narrow-shards/weights.safetensors
expect_success launch 4 "$annulet" train --config run.toml --compress topk:16 --driver thread --out sparse
[ "$(value sparse payload_bytes)" -eq $((8 * 49)) ] || fail "a rank does not bring ceil(n / 16) values of each tensor"
[ "$(value sparse wire_bytes_per_step)" -eq $((4 * 3 * 8 * 49)) ] || fail "wire bytes of sparse gradients are not p (p-1) payload"
grep -q 'compressed by topk:16: a rank brings 392 B .* stops paying: as many bytes as dense with 15.4 ranks' <(tr '\n' ' ' <log) ||
  fail "does not say what compression saved"
expect_success launch 4 "$annulet" train --config run.toml --compress topk:16 --driver blocking --out sparse-blocking
same sparse/weights.safetensors sparse-blocking/weights.safetensors
expect_failure "compress = topk:16 with zero = 2" launch 2 "$annulet" train --config run.toml --compress topk:16 --zero 2
expect_failure "bfloat16 is half of a float" "$annulet" train --config run.toml --compress bf16 --type double

# The resolved configuration gives the same run again; the command line wins over the file.
expect_success launch 2 "$annulet" train --config two/config.toml --out again
same two/weights.safetensors again/weights.safetensors
same two/config.toml again/config.toml
expect_success "$annulet" train --config run.toml --steps 3 --out three
[ "$(wc -l <three/steps.jsonl)" -eq 3 ] || fail "--steps did not win over the file"

# --init starts from the weights, --steps 0 evaluates and writes them unchanged.
expect_success "$annulet" train --config run.toml --init two/weights.safetensors --steps 0 --out zero
same two/weights.safetensors zero/weights.safetensors
[ "$(value zero train_loss)" = null ] || fail "a run of no steps has no training loss"
[ "$(value zero accuracy)" = "$(value two accuracy)" ] || fail "evaluation of the same weights differs"

# Nothing is lost unasked, and what is wrong is said.
expect_failure "is not empty" "$annulet" train --config run.toml --out two
expect_failure "missing.safetensors" "$annulet" train --config run.toml --out two --overwrite --init missing.safetensors
[ -s two/weights.safetensors ] || fail "a run that was refused took an older one's weights with it"
expect_success "$annulet" train --config run.toml --out two --overwrite --init two/weights.safetensors
printf '[model]\nwidht = [1]\n' >typo.toml
expect_failure "typo.toml: unknown key 'model.widht'" "$annulet" train --config typo.toml
expect_failure "missing.toml was not readable" "$annulet" train --config missing.toml
expect_failure "batch = 0 is out of range" launch 2 "$annulet" train --config run.toml --batch 0
expect_failure "'4 bananas' is not a size" "$annulet" train --config run.toml --bucket "4 bananas"
expect_failure "the world has 2 ranks, expected 3" launch 2 "$annulet" train --config run.toml --expect-ranks 3
expect_failure "the launcher started 5 processes but the world size is 1" env OMPI_COMM_WORLD_SIZE=5 "$annulet" train --config run.toml
expect_failure "data.images or data.labels is missing" launch 2 "$annulet" train --steps 1
expect_failure "data.samples = 64 belongs to data.kind = synthetic, which is idx" "$annulet" train --config run.toml --data.kind idx
expect_failure "model.width = 30 belongs to model.kind = gpt, which is mlp" "$annulet" train --config run.toml --model.width 30
printf 'garbage' >images.idx
expect_failure "images.idx" launch 2 "$annulet" train --data.images images.idx --data.labels images.idx
expect_failure "is not a command" "$annulet" tarin

# A machine file replaces the calibration.
printf 'alpha = "10us"\nbandwidth = "1GB/s"\n' >machine.toml
expect_success launch 2 "$annulet" train --config run.toml --machine machine.toml
grep -q 'bandwidth 1 GB/s.*(machine.toml)' log || fail "the machine file's link is not shown"
printf 'alpha = "10us"\n' >half.toml
expect_failure "half.toml is not a machine file" "$annulet" train --config run.toml --machine half.toml

# On a slow link the result is the same, and one rank needs no launcher.
expect_success launch 2 "$annulet" train --config run.toml --emulate alpha=1ms,bandwidth=10MB/s --out slow
same again/weights.safetensors slow/weights.safetensors
expect_success "$annulet" train --help
grep -q -- '--optimizer.momentum' log || fail "help does not list the options"
expect_success "$annulet" --version

# A language model: a run folder is all that sampling needs, and the same seed says the same.
for ((i = 0; i < 200; ++i)); do printf 'the ring turns round and round; '; done >text.txt
cat >gpt.toml <<'EOT'
steps = 30
batch = 4

[model]
kind = "gpt"
layers = 1
width = 32
context = 16

[data]
kind = "text"
text = "text.txt"

[optimizer]
kind = "adamw"
lr = 0.01
EOT
expect_success launch 2 "$annulet" train --config gpt.toml --out spoken
[ "$(value spoken targets)" -gt 600 ] || fail "not every token of the validation part was foretold"
for config in "$ANNULET_SOURCE"/configs/*.toml; do
  options=(--steps 0)
  case $config in
    */fashion-mnist*) [ -d /usr/share/datasets/fashion-mnist ] || continue ;;
    */gpt-text* | */gpt-cpu*) options+=(--data.text text.txt) ;;
  esac
  expect_success "$annulet" train --config "$config" "${options[@]}"
done
mv text.txt gone.txt
expect_success "$annulet" sample --run spoken --prompt "the ring" --bytes 40 --seed 3
cp log first
[ "$(wc -c <first)" -eq 49 ] || fail "prompt, 40 bytes and a line end were expected"
grep -q '^the ring' first || fail "the text does not begin with the prompt"
expect_success "$annulet" sample --run spoken --prompt "the ring" --bytes 40 --seed 3
same first log
expect_failure "'X' at place 0 is not in the vocabulary" "$annulet" sample --run spoken --prompt X
expect_failure "speaks no language" "$annulet" sample --run two
expect_failure "missing/config.toml is not there" "$annulet" sample --run missing
expect_success "$annulet" sample --run spoken --bytes 3
expect_failure "data.text is missing" "$annulet" train --model.kind gpt --data.kind text
