#!/usr/bin/env bash
# annulet plan as a person uses it: every topic, its JSON and CSV, what it refuses; and a profiled step is the one that
# annulet train predicts.
# shellcheck source=tests/support/command.sh
source "$ANNULET_SOURCE/tests/support/command.sh"
ln -s "$ANNULET_SOURCE/configs" configs

# says TEXT...: the last command said each of them.
says() {
  local text
  for text in "$@"; do grep -qF -- "$text" "$work/log" || fail "did not say '$text'"; done
}

# values FILE KEY: the values of a key in JSON, to all digits.
values() { sed -n "s/^ *\"$2\": \([^,]*\),\{0,1\}\$/\1/p" "$1"; }

expect_success "$annulet" plan --help
topics=$(sed -n 's/^  \([a-z]*\) .*/\1/p' log)
[ "$(wc -w <<<"$topics")" -eq 8 ] || fail "eight topics"
for topic in $topics; do
  expect_success "$annulet" plan "$topic" --help
  says "Usage: annulet plan $topic" --json --csv --explain
done

# Every topic answers, to people and to programs.
expect_success "$annulet" plan collectives --model llama-7b --ranks 8
grep -q '^all-reduce  *ring  *14  *52.48 ms' log || fail "the ring's row"
expect_success "$annulet" plan collectives --bytes 100MB --machine ethernet-10g --ranks 4
expect_success "$annulet" plan memory --model llama-7b --ranks 64
grep -q '^ *3 .* 1.68 .* yes$' log || fail "stage 3 fits"
expect_success "$annulet" plan memory --parameters 7500000000 --ranks 64
grep -q ' 31.41 ' log || fail "7.5 billion parameters on 64 ranks are 31.4 GB at stage 1"
expect_success "$annulet" plan step --model llama-7b --ranks 64 --tokens 1048576
says '2.174 s' '35.7 %' 'compute |ffff'
expect_success "$annulet" plan step --model llama-7b --ranks 64 --tokens 1048576 --explain
says 'formula  compute + all-reduce' 'result   2.174 s'
expect_success "$annulet" plan compress --model gpt-2 --density 1/16,0.01 --ranks 4,16
expect_success "$annulet" plan bucket --model gpt-2 --ranks 8
says cheapest
expect_success "$annulet" plan scale --model gpt-2 --ranks 1,8,4096 --jitter 0.05 --critical-batch 500000
says 'event simulation' 'closed form' '1 + C/B'
expect_success "$annulet" plan advise --model llama-7b --ranks 64
says 'lacks ' 'candidates fit'
expect_success "$annulet" plan advise --model llama-7b --ranks 2 --bucket 25MiB --memory 1GB
says 'nothing fits'
expect_success "$annulet" plan deck
says 'all 78 figures come out'

# The same numbers in JSON and CSV, to a file or to the screen.
expect_success "$annulet" plan step --model gpt-2 --ranks 8 --json step.json --csv step.csv
says overlapped
"$annulet" plan step --model gpt-2 --ranks 8 --json >screen.json
cmp -s step.json screen.json || fail "--json to a file and to the screen differ"
[ "$(values step.json step_seconds)" = "$(awk -F, 'NR > 1 && NF == 6 {print $2}' step.csv)" ] ||
  fail "step_seconds differ between JSON and CSV"
[ "$(values step.json step_seconds | wc -l)" -eq 4 ] || fail "four ways to send"

# plan is not the business of MPI: nothing is begun or ended, and what ends MPI at once does not matter.
expect_success counted 1 "$work/train-count" "$annulet" train --steps 0 --data.kind synthetic
[ -e train-count.0 ] || fail "the counter sees no MPI in a run either"
expect_success counted 1 "$work/plan-count" "$annulet" plan deck
[ ! -e plan-count.0 ] || fail "plan has called MPI"
export OMPI_MCA_pml=none_of_them
if "$annulet" train --steps 0 --data.kind synthetic >log 2>&1; then fail "MPI begins in spite of everything"; fi
expect_success "$annulet" plan step --model gpt-2
unset OMPI_MCA_pml

# A profiled step is what the engine predicts, to the last digit.
cat >run.toml <<'EOF'
steps = 12
batch = 16

[model]
widths = [60, 300, 4]

[data]
kind = "synthetic"
samples = 64
EOF
printf 'alpha = "10us"\nbandwidth = "1GB/s"\nmoving = "3GB/s"\n' >machine.toml
printf 'moving = "3GB/s"\n[inside]\nalpha = "2us"\nbandwidth = "4GB/s"\n[between]\nalpha = "1ms"\nbandwidth = "1GB/s"\n' \
  >nodes.toml
expect_success "$annulet" train --config run.toml --batch 8 --record-profile --out one

# engine_and_plan "OPTIONS OF BOTH" "OF TRAIN" "OF PLAN"
engine_and_plan() {
  local both train plan
  read -ra both <<<"$1"
  read -ra train <<<"$2"
  read -ra plan <<<"$3"
  expect_success launch 2 "$annulet" train --config run.toml --steps 0 --predict-from one/profile.json --out two \
    --overwrite "${both[@]}" "${train[@]}"
  expect_success "$annulet" plan step --profile one/profile.json --ranks 2 --json plan.json "${both[@]}" "${plan[@]}"
  for key in step_seconds exposed_seconds backward_ends control_seconds; do
    [ -n "$(values two/prediction.json $key)" ] || fail "no $key was predicted"
    [ "$(values two/prediction.json $key)" = "$(values plan.json $key)" ] ||
      fail "$1 $2: $key is $(values two/prediction.json $key) to the engine, $(values plan.json $key) to the planner"
  done
}
for driver in blocking polling thread; do
  for buckets in "" "--bucket 64KiB --first-bucket 1KiB"; do
    engine_and_plan "--machine machine.toml --driver $driver $buckets" "" ""
  done
done
engine_and_plan "--machine machine.toml --driver polling --bucket 64KiB --segment 4KiB --slots 3" "" ""
engine_and_plan "--machine nodes.toml --driver polling" "" "--ranks-per-node 2"
engine_and_plan "--machine nodes.toml --driver polling --emulate alpha=2us,bandwidth=4GB/s" "" ""
for options in "--zero 1" "--zero 3" "--compress topk:16" "--zero 2 --compress bf16"; do
  engine_and_plan "--machine machine.toml --driver polling $options" "" ""
done
expect_failure "compress = topk:16 with zero = 1" "$annulet" plan step --profile one/profile.json --zero 1 --compress topk:16
expect_failure "a profile is recorded without --zero 1" "$annulet" train --config run.toml --zero 1 --record-profile --out other
expect_success "$annulet" plan step --model gpt-2 --machine h100 --ranks 8 --zero 3
says "ZeRO stage 3"
expect_success "$annulet" plan bucket --profile one/profile.json --ranks 2 --machine machine.toml
says cheapest

# What is wrong is said: which field, of which file, and what to try.
m=$ANNULET_SOURCE/configs/models/gpt-2.toml
expect_failure "--bandwidth: '-5GB/s' is not a bandwidth (it is negative)" "$annulet" plan step --model gpt-2 --bandwidth -5GB/s
says 'Write bytes or bits per second'
printf 'alpha = "10us"\nbandwidth = "-1GB/s"\n' >negative.toml
expect_failure "negative.toml is not a machine file: line 2: bandwidth: '-1GB/s'" "$annulet" plan collectives --bytes 1MB --machine negative.toml
says 'Write bytes or bits per second'
sed 's/^width.*/width = 128/; s/^heads.*/heads = 7/' "$m" >seven.toml
expect_failure "seven.toml is not a model file: line 5: 7 heads do not divide a width of 128" "$annulet" plan step --model seven.toml
says 'Choose a width that is a multiple of the heads'
{ cat "$m"; echo 'experts = 8'; } >experts.toml
expect_failure "experts.toml is not a model file: line $(wc -l <experts.toml): unknown key 'experts'" "$annulet" plan memory --model experts.toml
says 'Give layers, width'
printf 'alpha = "10us"\nbandwidth = "1GB/s"\nspeed = 3\n' >speed.toml
expect_failure "speed.toml is not a machine file: line 3: unknown key 'speed'" "$annulet" plan collectives --bytes 1MB --machine speed.toml
expect_failure "--ranks: '0' is not a count of 1 or more" "$annulet" plan step --model gpt-2 --ranks 0
expect_failure "--tokens: '-1' is not a count of 0 or more" "$annulet" plan scale --model gpt-2 --tokens -1
expect_failure "there is no file gpt-9" "$annulet" plan step --model gpt-9
says 'nanogpt-char'
expect_failure "there is no file h1000" "$annulet" plan step --model gpt-2 --machine h1000
says 'wan-100gbe'
expect_failure "'steps' is not a topic" "$annulet" plan steps
says 'annulet plan --help'
expect_failure "there is neither --model nor --bytes" "$annulet" plan collectives
says 'say --model llama-7b or --bytes 100MB'
expect_failure "--model and --bytes are both given" "$annulet" plan collectives --model gpt-2 --bytes 1MB
expect_failure "there is neither --model nor --parameters" "$annulet" plan memory
expect_failure "there is neither --model nor --profile" "$annulet" plan step
expect_failure "--model does not go with --profile" "$annulet" plan step --model gpt-2 --profile one/profile.json
expect_failure "--driver does not go with --model" "$annulet" plan step --model gpt-2 --driver thread
expect_failure "h100: no peak_int4 in [device]" "$annulet" plan step --model gpt-2 --type int4
says 'Choose --type bf16'
expect_failure "wan-100gbe: no memory in [device]" "$annulet" plan advise --model gpt-2 --machine wan-100gbe --peak 1TFLOP/s --efficiency 0.5
says 'Give --memory'
expect_failure "run.toml is not a profile" "$annulet" plan step --profile run.toml
expect_failure "--nonsense" "$annulet" plan step --model gpt-2 --nonsense
