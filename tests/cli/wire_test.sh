#!/usr/bin/env bash
# Bytes counted independently, by a layer under the program, are those that it says it sent: the difference between a
# long and a short run, since what is sent at the start is the same in both.
# shellcheck source=tests/support/command.sh
source "$ANNULET_SOURCE/tests/support/command.sh"

cat >run.toml <<'EOF'
batch = 12

[model]
widths = [31, 40, 5]

[data]
kind = "synthetic"
samples = 60
EOF
printf 'alpha = "10us"\nbandwidth = "1GB/s"\n' >machine.toml

# numbers FILE KEY: the numbers of a value, or of a list, in a summary.
numbers() { tr -d '\n ' <"$1" | sed -n "s/.*\"$2\":\[\{0,1\}\([0-9,]*\).*/\1/p" | tr ',' ' '; }

for ranks in 2 3 4; do
  for steps in 5 25; do
    expect_success counted "$ranks" "$work/count-$steps" "$annulet" train --config run.toml --machine machine.toml \
      --steps "$steps" --out "run-$ranks-$steps"
  done
  total=0
  for ((rank = 0; rank < ranks; ++rank)); do
    short=$(awk '{print $4}' "count-5.$rank") long=$(awk '{print $4}' "count-25.$rank")
    total=$((total + (long - short) / 20))
  done
  summary=run-$ranks-25/summary.json
  gradients=$(numbers "$summary" wire_bytes_per_step) control=$(numbers "$summary" control_bytes_per_step)
  parameters=$(numbers "$summary" parameters)
  [ "${gradients% }" -eq $((2 * (ranks - 1) * parameters * 4)) ] || fail "$ranks ranks: $gradients bytes, not 2 (p-1) M"
  [ "$total" -eq $((gradients + control)) ] || fail "$ranks ranks: counted $total bytes, reported $gradients + $control"
done
