#!/usr/bin/env bash
# How long does a collective take, and how long was it said to take? On links of known speed, emulated ones and the
# cards of a cluster in a box (as root): `calibrate` sees point-to-point and ring traffic only; then `bench` runs every
# collective by every algorithm, and its event simulation of the same plans is set beside.
# The table: by network and ranks, the median and the largest |measured / predicted - 1|, in percent, and how many rows.
#   residuals.sh                  all networks
#   NETWORKS   separated by spaces, each RATE:RANKS or an emulated link:RANKS
#   MIN_BYTES (64KiB), MAX_BYTES (16MiB), FACTOR (4) of the sizes; PER_SIZE (1500ms) of rounds; COLLECTIVES (all), ALGORITHMS (all)
#   OUT        a folder that keeps machine files and rows
# shellcheck source=scripts/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"
emulated=alpha=1ms,bandwidth=250MB/s
read -r -a networks <<<"${NETWORKS:-$emulated:2 $emulated:3 $emulated:4 1gbit:2 1gbit:4 200mbit:2 200mbit:4}"
annulet=$(realpath -m -- "$build/annulet")
[ -x "$annulet" ] || die "residuals: $annulet is not there. Run scripts/quickstart.sh or scripts/test.sh first."

out=${OUT:-$(mktemp -d)}
mkdir -p "$out"
out=$(CDPATH='' cd -- "$out" && pwd -P)
work=$(mktemp -d)
finish() {
  network_down || true
  if [ -z "${OUT:-}" ]; then rm -rf -- "$out"; fi
  rm -rf -- "$work"
}
trap finish EXIT

# measure NETWORK RANKS: rows of "collective algorithm bytes measured predicted"
measure() {
  local name
  name=$(tr -c 'a-zA-Z0-9\n' - <<<"$1-$2")
  network_up "$1" "$2"
  on "$1" "$2" "$annulet" calibrate --out "$out/$name.toml" >"$out/$name.calibration"
  on "$1" "$2" "$annulet" bench --collective "${COLLECTIVES:-all}" --algorithm "${ALGORITHMS:-all}" --machine "$out/$name.toml" \
    --min-bytes "${MIN_BYTES:-64KiB}" --max-bytes "${MAX_BYTES:-16MiB}" --factor "${FACTOR:-4}" \
    --per-size "${PER_SIZE:-1500ms}" \
    --csv "$out/$name.csv" >"$out/$name.bench"
  network_down
  awk -F, 'NR > 1 && $16 != "" {print $1, $2, $3, $8, $16}' "$out/$name.csv"
}

# Of rows: "median worst count" of the residuals in percent.
summary() {
  awk '{e = $4 / $5 - 1; print (e < 0 ? -e : e) * 100}' | sort -g |
    awk '{e[NR] = $1} END {if (NR) printf "%6.1f %% %6.1f %% %4d", (e[int((NR + 1) / 2)] + e[int(NR / 2) + 1]) / 2, e[NR], NR}'
}

printf '%-32s %5s %-18s %-20s %8s %8s %4s\n' network ranks collective algorithm median worst rows
for pair in "${networks[@]}"; do
  network=${pair%:*} ranks=${pair##*:}
  measure "$network" "$ranks" >"$work/rows"
  cut -d' ' -f1,2 "$work/rows" | awk '!seen[$0]++' | while read -r collective algorithm; do
    printf '%-32s %5s %-18s %-20s %s\n' "$network" "$ranks" "$collective" "$algorithm" \
      "$(grep "^$collective $algorithm " "$work/rows" | summary)"
  done
  printf '%-32s %5s %-18s %-20s %s\n' "$network" "$ranks" all all "$(summary <"$work/rows")"
done
