#!/usr/bin/env bash
# Is a step what was predicted before it? For each configuration and link: what calibration finds there, as a machine file;
# then, for each bucket cap, driver and setup (ranks, stage of ZeRO, compression), a profile of one rank (as
# many lone ranks compute at once, as on the same cores they will; a step waits for the slowest, so the slowest one's is
# taken) and the ranks that train. prediction.json is written before the first step; the table sets it beside the median step.
# A shared core has good and bad seconds: this one computes the same forward pass in 8.7 ms or in 11.3 ms. What a network
# does is seen only where both runs had cores of one speed, so a round counts if profiles before and after it agree within
# 5 %, and otherwise is made again. Of the rounds that count the one with the middle error is shown, with how many were made.
#   predict.sh [CONFIG...]      default configs/peer-mlp.toml configs/peer-gpt.toml; their `batch` is a rank's share
#   LINKS, CAPS, DRIVERS, SETUPS (2/0/none: RANKS/STAGE/COMPRESSION)   separated by spaces; a link is emulated, or the rate
#     of the cards of a cluster in a box (1gbit, as root; with PIECE=65536, as of cards that cut pieces themselves), which
#     has hosts for the largest setup
#   MACHINE   a machine by name, or a file (from the repository's root), to predict one link with instead of calibrating
#   STEPS of a run (30); ROUNDS that count (5); TRIES for them (15)
# shellcheck source=scripts/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"
if [ $# -eq 0 ]; then set -- configs/peer-mlp.toml configs/peer-gpt.toml; fi
read -r -a links <<<"${LINKS:-alpha=1ms,bandwidth=250MB/s alpha=200us,bandwidth=500MB/s}"
read -r -a caps <<<"${CAPS:-256KiB 1MiB 4MiB}"
read -r -a drivers <<<"${DRIVERS:-blocking polling thread}"
read -r -a setups <<<"${SETUPS:-2/0/none}"
if [ -n "${MACHINE:-}" ] && [ ${#links[@]} -gt 1 ]; then die "predict: MACHINE is for one link, LINKS has ${#links[@]}. Name one."; fi
steps=${STEPS:-30} rounds=${ROUNDS:-5} tries=${TRIES:-15}
annulet=$(realpath -m -- "$build/annulet")
[ -x "$annulet" ] || die "predict: $annulet is not there. Run scripts/quickstart.sh or scripts/test.sh first."

work=$(mktemp -d)
trap 'network_down || true; rm -rf -- "$work"' EXIT
most=0
for setup in "${setups[@]}"; do most=$((${setup%%/*} > most ? ${setup%%/*} : most)); done
value() { sed -n "s/^ *\"$2\": \([0-9.e+-]*\),\{0,1\}\$/\1/p" "$1" | head -n 1; }

# profile CONFIG LINK RANKS: the slowest lone rank's, as $work/profile.json. Hosts have a core each, and so have their ranks.
profile() {
  local options=(--config "$1" --steps "$steps" --record-profile --overwrite) rank slowest=0 computes pid pids=() place=()
  rm -f -- "$work"/lone*/profile.json
  for ((rank = 0; rank < $3; ++rank)); do
    if ! is_emulated "$2"; then place=(taskset -c $((rank % cores))); fi
    "${place[@]}" "$annulet" train "${options[@]}" --out "$work/lone$rank" >/dev/null &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || die "predict: a rank of $1 did not train alone (see above)."; done
  for ((rank = 0; rank < $3; ++rank)); do
    computes=$(value "$work/lone$rank/profile.json" backward_ends_seconds)
    if awk "BEGIN {exit !(${computes:-0} > $slowest)}"; then
      slowest=$computes
      cp "$work/lone$rank/profile.json" "$work/profile.json"
    fi
  done
  [ "$slowest" != 0 ] || die "predict: a profile of $1 has no steps. Give it more STEPS."
}

# machine LINK, as $work/machine.toml
machine() {
  if [ -n "${MACHINE:-}" ]; then return; fi
  on "$1" "$(is_emulated "$1" && echo 2 || echo "$most")" "$annulet" calibrate --out "$work/machine.toml" >/dev/null
}

# measure CONFIG LINK CAP DRIVER SETUP: predicted and measured seconds of a step, then what a rank computes in one before
# and after. The profile after is the next round's before.
measure() {
  local batch ranks stage compression before
  IFS=/ read -r ranks stage compression <<<"$5"
  batch=$((ranks * $(sed -n 's/^batch *= *\([0-9]*\).*/\1/p' "$1")))
  before=$(value "$work/profile.json" backward_ends_seconds)
  on "$2" "$ranks" "$annulet" train --config "$1" --steps "$steps" --batch "$batch" --bucket "$3" \
    --first-bucket "$3" --driver "$4" --zero "$stage" --compress "$compression" --machine "${MACHINE:-$work/machine.toml}" \
    --predict-from "$work/profile.json" --overwrite --out "$work/run" >/dev/null
  profile "$1" "$2" "$ranks"
  local measured
  measured=$(value "$work/run/summary.json" median_step_seconds)
  [ -n "$measured" ] || die "predict: a run of $1 has no median step. Give it more STEPS."
  printf '%s %s %s %s\n' "$(value "$work/run/prediction.json" step_seconds)" "$measured" "$before" \
    "$(value "$work/profile.json" backward_ends_seconds)"
}

# Of lines from measure those in which the cores kept their speed.
steady() { awk '{e = $4 / $3 - 1} e <= 0.05 && e >= -0.05' "$1"; }

# Of such lines the one with the middle error.
middle() { awk '{print $2 / $1, $0}' | sort -g | awk '{line[NR] = $2 " " $3} END {print line[int((NR + 1) / 2)]}'; }

# cell CONFIG LINK CAP DRIVER SETUP: a line of the table
cell() {
  local times=$work/times made
  : >"$times"
  profile "$1" "$2" "${5%%/*}"
  for ((made = 0; made < tries && $(steady "$times" | wc -l) < rounds; ++made)); do
    measure "$@" >>"$times"
  done
  if [ "$(steady "$times" | wc -l)" -eq 0 ]; then
    printf '%-10s %-30s %-8s %-9s %-10s the cores changed their speed in all of %d rounds\n' \
      "$(basename "$1" .toml)" "$2" "$3" "$4" "$5" "$made"
    return
  fi
  steady "$times" | middle | awk -v c="$(basename "$1" .toml)" -v l="$2" -v b="$3" -v d="$4" -v s="$5" -v m="$made" '{
    printf "%-10s %-30s %-8s %-9s %-10s %12.2f %11.2f %+6.1f %% %6d\n", c, l, b, d, s, $1 * 1e3, $2 * 1e3, ($2 / $1 - 1) * 100, m
    }'
}

printf '%-10s %-30s %-8s %-9s %-10s %12s %11s %8s %6s\n' config link cap driver setup "predicted ms" "measured ms" error rounds
for config; do
  for link in "${links[@]}"; do
    network_up "$link" "$most"
    machine "$link"
    for cap in "${caps[@]}"; do
      for driver in "${drivers[@]}"; do
        for setup in "${setups[@]}"; do cell "$config" "$link" "$cap" "$driver" "$setup" | tee -a "$work/table"; done
      done
    done
    network_down
  done
done
awk '{++all} $(NF - 1) == "%" {e = $(NF - 2); if (e < 0) e = -e; if (e <= 10) ++good; if (e > worst) worst = e}
  END {printf "%d of %d within 10 %%, the worst %.1f %% off\n", good, all, worst}' "$work/table"
