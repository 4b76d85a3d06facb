#!/usr/bin/env bash
# Data parallelism, statement by statement, each with one command and what it really prints: replicas that agree, the ring,
# what a tree costs, why sparse gradients grow, ZeRO, overlap, MFU, and the same bits. Half a minute; no data, no cluster.
#   deck.sh
# shellcheck source=scripts/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"
annulet=$build/annulet
[ -x "$annulet" ] || die "deck: $annulet is not there. Run scripts/quickstart.sh or scripts/test.sh first."
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT

statement() { printf '\n%s\n' "$*" | fold -s -w 110; }

# show ARGUMENTS...: annulet with them
show() {
  printf '$ annulet %s\n' "$*"
  "$annulet" "$@"
}

# show_on RANKS ARGUMENTS...: likewise, on so many ranks
show_on() {
  local ranks=$1
  shift
  printf '$ mpirun -n %s annulet %s\n' "$ranks" "$*"
  launch "$ranks" "$annulet" "$@"
}

# losses RANKS: of a small language model's first steps, whose global batch does not depend on the ranks
losses() {
  local out=$work/run-$1
  show_on "$1" train --config configs/peer-gpt.toml --model.layers 1 --steps 4 --batch 16 --out "$out" >"$work/log"
  head -n 1 "$work/log"
  sed -n 's/^{"step":\([0-9]*\),"loss":\([0-9.]*\).*/step \1  loss \2/p' "$out/steps.jsonl"
}

statement "1. Every worker holds the whole model and its share of the batch. The mean of their gradients is the" \
  "gradient of the whole batch: data parallelism changes where the arithmetic happens, not what it computes."
losses 1
losses 4

statement "2. An all-reduce sums everyone's gradients. In a ring each of p workers sends 2(p-1)/p of its vector, the" \
  "least any all-reduce can; what grows is the number of steps, 2(p-1), each with a latency. Step by step, and counted, on four ranks:"
show ring --ranks 4 --elements 16
printf 'alpha = "1ms"\nbandwidth = "100MB/s"\n' >"$work/link.toml"
show_on 4 bench --algorithm ring --min-bytes 1MiB --max-bytes 1MiB --emulate alpha=1ms,bandwidth=100MB/s \
  --machine "$work/link.toml"

statement "3. By the link model, alpha + n/B a message: LLaMA 7B's gradient among 8 GPUs on NVLink, and among 64 on a" \
  "network. A tree has fewer steps and is several times slower; reduce-scatter and all-gather are half a ring each."
show plan collectives --model llama-7b --machine nvlink-h100 --ranks 8
show plan collectives --model llama-7b --machine network-400g --ranks 64

statement "4. Sparse gradients differ in layout and cannot be added on the way: each of the p-1 pieces arrives whole. So" \
  "one value in sixteen, with its position, stops paying at 16 workers."
show plan compress --model llama-7b --machine network-400g --ranks 2,8,16,64
show_on 4 train --config configs/peer-gpt.toml --model.layers 1 --steps 8 --batch 16 --compress topk:16 --out "$work/sparse" \
  >"$work/log"
head -n 1 "$work/log"
grep -E '^(wire bytes|compressed|stops paying|choosing)' "$work/log"

statement "5. Plain data parallelism keeps all 16 bytes a parameter on every worker. ZeRO shards them: the optimiser's" \
  "first, then gradients, then weights, which alone costs more traffic."
show plan memory --model llama-7b --ranks 8
show plan memory --model llama-7b --ranks 64

for stage in 0 1 2 3; do
  show_on 4 train --config configs/peer-gpt.toml --model.layers 1 --steps 6 --batch 16 --zero $stage --out "$work/zero-$stage" \
    >"$work/log"
  head -n 1 "$work/log"
  grep -E '^(wire bytes|  (weights|gradients|optimiser state|= model states) )' "$work/log"
done

statement "6. A step is compute and synchronisation. What is sent while backward still runs costs nothing extra."
show plan step --model llama-7b --machine h100 --ranks 64 --tokens 1048576

statement "7. Over a WAN the communication outgrows the compute, and no overlap can hide it."
show plan step --model llama-7b --machine h100 --ranks 64 --tokens 1048576 --bandwidth 12.5GB/s --alpha 10us

statement "8. On this machine, over an emulated link: the last step as it was measured, and as it was predicted."
show_on 2 train --config configs/peer-mlp.toml --steps 12 --batch 128 --emulate alpha=1ms,bandwidth=250MB/s \
  --driver polling --show-step 11 --out "$work/overlap"

statement "9. Bigger batches need fewer steps only up to the critical batch; more workers cost efficiency."
show plan scale --model llama-7b --machine h100 --tokens 16384 --ranks 1,8,64,1024,16384 --jitter 0.02 \
  --critical-batch 4000000

statement "10. The mean of the workers' gradients is the same up to rounding, since sums are made in another order. Sums in" \
  "one fixed tree over micro-shards of the batch have the same bits on any number of workers: all of them, then one alone."
show_on 3 verify --config configs/peer-gpt.toml --model.layers 1 --steps 4 --batch 16
show_on 3 verify --config configs/peer-gpt.toml --model.layers 1 --steps 4 --batch 16 --reproducible 8

statement "11. Every published figure, beside ours."
show plan deck
