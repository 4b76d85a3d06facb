#!/usr/bin/env bash
# Median step of configs/peer-mlp.toml or peer-gpt.toml on 1, 2 and 4 ranks beside the same model in PyTorch DDP,
# alternating in the same minutes. PEER is a script called as `PEER MODEL RANKS BATCH_PER_RANK STEPS` that prints
# "median step X ms"; without it only our own times are printed.
#   speed.sh [mlp|gpt [PEER [ROUNDS]]]        PYTHON: its interpreter, default /usr/bin/python3
# shellcheck source=scripts/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"
model=${1:-mlp} peer=${2:-} rounds=${3:-5}
case $model in
  mlp) batch=64 ;;
  gpt) batch=12 ;;
  *) die "speed: '$model' is no model with a peer. Choose mlp or gpt." ;;
esac
annulet=$build/annulet
[ -x "$annulet" ] || die "speed: $annulet is not there. Run scripts/quickstart.sh or scripts/test.sh first."

work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
value() { sed -n "s/^ *\"$2\": \([0-9.e+-]*\),\{0,1\}\$/\1/p" "$1/summary.json" | head -n 1; }
middle() { sort -g | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }

ours() {  # RANKS: milliseconds
  launch "$1" "$annulet" train --config "configs/peer-$model.toml" --steps 100 --batch $((batch * $1)) --out "$work/run" --overwrite >/dev/null
  awk -v s="$(value "$work/run" median_step_seconds)" 'BEGIN {print s * 1e3}'
}

theirs() {  # RANKS: milliseconds, one thread a rank as ours, with the best BLAS kernels there are
  env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 GLOO_SOCKET_IFNAME=lo \
    "${PYTHON:-/usr/bin/python3}" "$peer" "$model" "$1" "$batch" 60 |
    sed -n 's/.*median step \([0-9.]*\) ms.*/\1/p'
}

printf '%-6s %12s %12s %8s\n' ranks "ours ms" "peer ms" ratio
for ranks in 1 2 4; do
  : >"$work/ours" && : >"$work/theirs"
  for ((i = 0; i < rounds; ++i)); do
    ours "$ranks" >>"$work/ours"
    if [ -n "$peer" ]; then theirs "$ranks" >>"$work/theirs"; fi
  done
  awk -v r="$ranks" -v o="$(middle <"$work/ours")" -v t="$(middle <"$work/theirs")" 'BEGIN {
    printf "%-6d %12.2f %12s %8s\n", r, o, t == "" ? "-" : sprintf("%.2f", t), t == "" ? "-" : sprintf("%.2f", o / t)}'
done
