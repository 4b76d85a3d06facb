#!/usr/bin/env bash
# Does overlap hide communication? Two ranks on an emulated link on which a step's all-reduce takes about 0.7 of its
# backward pass, with every driver, beside two lone ranks that compute the same at the same time and send nothing.
#   overlap.sh [STEPS]
# shellcheck source=scripts/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"
steps=${1:-40}
annulet=$build/annulet
[ -x "$annulet" ] || die "overlap: $annulet is not there. Run scripts/quickstart.sh or scripts/test.sh first."

work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
cat >"$work/model.toml" <<EOF
steps = $steps

[model]
widths = [64, 1024, 1024, 1024, 10]

[data]
kind = "synthetic"
samples = 4096
EOF

value() { sed -n "s/^ *\"$2\": \([0-9.e+-]*\),\{0,1\}\$/\1/p" "$1/summary.json" | head -n 1; }
middle() { awk -v key="\"$2\":" -F, '{for (i = 1; i <= NF; ++i) if (index($i, key) == 1) print substr($i, length(key) + 1)}' \
  "$1/steps.jsonl" | sort -g | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }
train() { "$annulet" train --config "$work/model.toml" "$@" >/dev/null; }

# What computing alone costs when both cores compute.
train --batch 1024 --out "$work/alone1" &
train --batch 1024 --out "$work/alone2"
wait
compute=$(printf '%s\n' "$(value "$work/alone1" median_step_seconds)" "$(value "$work/alone2" median_step_seconds)" | sort -g | tail -n 1)
backward=$(middle "$work/alone1" backward_seconds)
bytes=$(($(value "$work/alone1" parameters) * 4))
alpha=0.0001
bandwidth=$(awk -v m="$bytes" -v t="$backward" -v a=$alpha 'BEGIN {printf "%d", m / (0.7 * t - 2 * a)}')
communication=$(awk -v m="$bytes" -v b="$bandwidth" -v a=$alpha 'BEGIN {print m / b + 2 * a}')

awk -v c="$compute" -v b="$backward" -v m="$communication" -v w="$bandwidth" 'BEGIN {
  printf "compute %.2f ms a step (backward %.2f), all-reduce %.2f ms at %.0f MB/s\n", c * 1e3, b * 1e3, m * 1e3, w / 1e6
  printf "%-10s %10s %16s %24s\n", "driver", "step ms", "step / compute", "step / (compute + comm)"}'
for driver in blocking polling thread; do
  launch 2 "$annulet" train --config "$work/model.toml" --batch 2048 --driver $driver --out "$work/$driver" \
    --emulate "alpha=${alpha}s,bandwidth=${bandwidth}B/s" >/dev/null
  awk -v d=$driver -v s="$(value "$work/$driver" median_step_seconds)" -v c="$compute" -v m="$communication" 'BEGIN {
    printf "%-10s %10.2f %16.3f %24.3f\n", d, s * 1e3, s / c, s / (c + m)}'
done
