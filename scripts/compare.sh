#!/usr/bin/env bash
# What do the variants of a run take, side by side? Rounds in which each variant trains once, one after the other, so that
# all of them meet the machine's good and bad minutes; of each the middle of the rounds' median steps, beside the first one's.
#   compare.sh CONFIG VARIANT...     a variant is a string of options of `annulet train`: "--zero 1", "--reproducible 8"
#   compare.sh                       the stages of ZeRO on configs/peer-gpt.toml
#   RANKS (4); SHARE of the batch a rank (the configuration's `batch`); STEPS of a run (60); ROUNDS (5)
# Bytes are counted, those of a step over all ranks; model states are the largest rank's.
# shellcheck source=scripts/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"
if [ $# -eq 0 ]; then set -- configs/peer-gpt.toml "--zero 0" "--zero 1" "--zero 2" "--zero 3"; fi
[ $# -ge 2 ] || { sed -n 's/^# \{0,1\}//p' "$0" | sed -n 1,7p >&2; exit 2; }
config=$1
shift
ranks=${RANKS:-4} steps=${STEPS:-60} rounds=${ROUNDS:-5}
[ -f "$config" ] || die "compare: there is no file $config. Name a configuration, as configs/peer-gpt.toml."
share=${SHARE:-$(sed -n 's/^batch *= *\([0-9]*\).*/\1/p' "$config")}
[ -n "$share" ] || die "compare: $config sets no batch (each rank takes as much). Set SHARE."
for number in RANKS="$ranks" SHARE="$share" STEPS="$steps" ROUNDS="$rounds"; do
  [[ ${number#*=} =~ ^[1-9][0-9]*$ ]] || die "compare: $number is no count. Give 1 or more."
done
batch=$((ranks * share))
annulet=$build/annulet
[ -x "$annulet" ] || die "compare: $annulet is not there. Run scripts/quickstart.sh or scripts/test.sh first."

work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
value() { sed -n "s/^ *\"$2\": \([0-9.e+-]*\),\{0,1\}\$/\1/p" "$1" | head -n 1; }
middle() { sort -g "$1" | awk '{line[NR] = $1} END {print line[int((NR + 1) / 2)]}'; }

# states SUMMARY: of the largest rank, bytes
states() {
  awk '/"model_state"/ {state = /true/}
    /"bytes_by_rank"/ {counting = state; rank = 0; next}
    /\]/ {counting = 0}
    counting {gsub(/[ ,]/, ""); sum[rank++] += $0}
    END {for (r in sum) if (sum[r] > most) most = sum[r]; print most + 0}' "$1"
}

for ((round = 0; round < rounds; ++round)); do
  variant=0
  for options; do
    read -r -a words <<<"$options"
    launch "$ranks" "$annulet" train --config "$config" --batch "$batch" --steps "$steps" ${words[@]+"${words[@]}"} \
      --overwrite --out "$work/$variant" >/dev/null
    value "$work/$variant/summary.json" median_step_seconds >>"$work/times-$variant"
    variant=$((variant + 1))
  done
done

printf '%s, %d ranks, batch %d, %d rounds of %d steps\n' "$config" "$ranks" "$batch" "$rounds" "$steps"
printf '%-36s %10s %8s %14s %14s\n' variant "step ms" "x first" "sent a step" "model states"
first=$(middle "$work/times-0") variant=0
for options; do
  awk -v name="${options:-(default)}" -v t="$(middle "$work/times-$variant")" -v f="$first" \
    -v sent="$(value "$work/$variant/summary.json" wire_bytes_per_step)" -v held="$(states "$work/$variant/summary.json")" \
    'BEGIN {printf "%-36s %10.2f %8.2f %14d %14d\n", name, t * 1e3, t / f, sent, held}'
  variant=$((variant + 1))
done
