#!/usr/bin/env bash
# Is a step what was predicted before it? For each configuration and emulated link: what calibration finds there, as a
# machine file; then, round by round, a profile of one rank (two lone ranks compute at once, as two ranks on two cores do)
# and two ranks with that bucket cap and each driver. prediction.json is written before the first step; the table sets it
# beside the median step. Of the rounds the one with the middle error counts, since virtual cores are not as fast at every
# minute: a profile tells little of a run made long after.
#   predict.sh [CONFIG...]      default configs/peer-mlp.toml configs/peer-gpt.toml; their `batch` is a rank's share
#   LINKS   emulated links, separated by spaces; STEPS of a run (30); ROUNDS (3)
# shellcheck source=scripts/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"
if [ $# -eq 0 ]; then set -- configs/peer-mlp.toml configs/peer-gpt.toml; fi
read -r -a links <<<"${LINKS:-alpha=1ms,bandwidth=250MB/s alpha=200us,bandwidth=500MB/s}"
steps=${STEPS:-30} rounds=${ROUNDS:-3}
annulet=$build/annulet
[ -x "$annulet" ] || die "predict: $annulet is not there. Run scripts/quickstart.sh or scripts/test.sh first."

work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
value() { sed -n "s/^ *\"$2\": \([0-9.e+-]*\),\{0,1\}\$/\1/p" "$1" | head -n 1; }

# profile CONFIG, as $work/profile/profile.json
profile() {
  local options=(--config "$1" --steps "$steps" --record-profile --overwrite)
  "$annulet" train "${options[@]}" --out "$work/lone" >/dev/null &
  "$annulet" train "${options[@]}" --out "$work/profile" >/dev/null
  wait $!
}

# machine LINK: what calibration finds on the emulated link, as $work/machine.toml
machine() { launch 2 "$annulet" calibrate --emulate "$1" --out "$work/machine.toml" >/dev/null; }

# measure CONFIG LINK CAP DRIVER: predicted and measured seconds of a step
measure() {
  local batch measured
  batch=$((2 * $(sed -n 's/^batch *= *\([0-9]*\).*/\1/p' "$1")))
  launch 2 "$annulet" train --config "$1" --steps "$steps" --batch "$batch" --emulate "$2" --bucket "$3" \
    --first-bucket "$3" --driver "$4" --machine "$work/machine.toml" --predict-from "$work/profile/profile.json" \
    --overwrite --out "$work/run" >/dev/null
  measured=$(value "$work/run/summary.json" median_step_seconds)
  [ -n "$measured" ] || die "predict: a run of $1 has no median step. Give it more STEPS."
  printf '%s %s\n' "$(value "$work/run/prediction.json" step_seconds)" "$measured"
}

# Of lines "predicted measured" the one with the middle error.
middle() { awk '{print $2 / $1, $0}' "$1" | sort -g | awk '{line[NR] = $2 " " $3} END {print line[int((NR + 1) / 2)]}'; }

printf '%-10s %-30s %-8s %-9s %12s %11s %8s\n' config link cap driver "predicted ms" "measured ms" error
for config; do
  for link in "${links[@]}"; do
    machine "$link"
    for cap in 256KiB 1MiB 4MiB; do
      rm -f -- "$work"/times-*
      for ((i = 0; i < rounds; ++i)); do
        profile "$config"
        for driver in blocking polling thread; do measure "$config" "$link" $cap $driver >>"$work/times-$driver"; done
      done
      for driver in blocking polling thread; do
        awk -v c="$(basename "$config" .toml)" -v l="$link" -v b=$cap -v d=$driver '{
          printf "%-10s %-30s %-8s %-9s %12.2f %11.2f %+6.1f %%\n", c, l, b, d, $1 * 1e3, $2 * 1e3, ($2 / $1 - 1) * 100
          }' <<<"$(middle "$work/times-$driver")"
      done
    done
  done
done | tee "$work/table"
awk '{e = $(NF - 1); if (e < 0) e = -e; if (e <= 10) ++in_; if (e > worst) worst = e}
  END {printf "%d of %d within 10 %%, the worst %.1f %% off\n", in_, NR, worst}' "$work/table"
