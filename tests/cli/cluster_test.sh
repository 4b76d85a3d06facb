#!/usr/bin/env bash
# Several hosts on one machine (scripts/cluster.sh): ranks stand in the ring host by host whatever the launcher does, hosts
# train the same, and the cards send what we count.
source "$ANNULET_SOURCE/tests/support/command.sh"

export ANNULET_BUILD SECONDS_MOST=60
ANNULET_BUILD=$(dirname -- "$annulet")
cluster() { bash "$ANNULET_SOURCE/scripts/cluster.sh" "$@"; }

if ! reason=$(cluster can); then echo "SKIPPED: no cluster in a box: $reason"; exit 0; fi
if ip link show annulet0 >/dev/null 2>&1; then echo "SKIPPED: there is a cluster in a box already, which may be in use"; exit 0; fi
trap 'cluster down; rm -rf -- "$work"' EXIT

expect_failure "there is no cluster" cluster run 2 true
expect_failure "is no number of hosts" cluster up none 1gbit
expect_success cluster up 2 1gbit
expect_failure "there is a cluster already" cluster up 2 1gbit
expect_failure "too few for 3" cluster run 3 true

# The launcher deals ranks out like cards.
printf 'alpha = "50us"\nbandwidth = "118MB/s"\n' >link.toml
RANKS_PER_HOST=2 MPIRUN_ARGS="--map-by node" expect_success cluster run 4 \
  "$annulet" bench --algorithm ring --min-bytes 256KiB --max-bytes 256KiB --machine "$work/link.toml"
grep -q '^4 ranks on 2 nodes, in ring order 0 2 | 1 3, ' "$work/log" || fail "the ring does not go by host"

! grep -q BBR "$work/log" || fail "a warning of BBR, which the hosts do not use"

sent() { cluster wire | awk '{sum += $2} END {print sum}'; }
before=$(sent)
steps=6
expect_success cluster run 2 "$annulet" train --config "$ANNULET_SOURCE/configs/peer-gpt.toml" --batch 8 --steps $steps \
  --machine "$work/link.toml" --out "$work/two"
after=$(sent)
wire=$(sed -n 's/^ *"wire_bytes_per_step": \([0-9]*\),$/\1/p' two/summary.json)
# Headers of Ethernet, IP and TCP and their acknowledgements take 5 %; the launcher's own traffic a few 10 KB.
awk -v card=$((after - before)) -v ours=$((steps * wire)) 'BEGIN {exit !(card > ours && card < 1.08 * ours)}' ||
  fail "the cards sent $((after - before)) bytes for $((steps * wire)) of ours"
expect_success cluster run 1 "$annulet" train --config "$ANNULET_SOURCE/configs/peer-gpt.toml" --batch 8 --steps $steps \
  --out "$work/one"
loss() { sed -n 's/^ *"train_loss": \([0-9.]*\),$/\1/p' "$1/summary.json"; }
awk -v a="$(loss one)" -v b="$(loss two)" 'BEGIN {d = a / b - 1; exit !(d < 1e-4 && d > -1e-4)}' ||
  fail "two hosts train to another loss: $(loss one) and $(loss two)"

# Predictions do not hold over BBR, and whoever measures is told so.
if grep -qw bbr /proc/sys/net/ipv4/tcp_allowed_congestion_control; then
  cluster down
  CONGESTION=bbr expect_success cluster up 2 1gbit
  warns() {
    expect_success cluster run 2 "$annulet" "$@"
    grep -q "TCP of rank 0's host uses BBR" "$work/log" || fail "no warning of BBR from $1"
  }
  warns calibrate
  warns bench --algorithm ring --min-bytes 64KiB --max-bytes 64KiB --machine "$work/link.toml"
  warns train --config "$ANNULET_SOURCE/configs/peer-gpt.toml" --batch 8 --steps 1 --machine "$work/link.toml"
fi
