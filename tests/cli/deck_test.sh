#!/usr/bin/env bash
# scripts/deck.sh says what it promises: equal losses, bytes counted as planned, and the published figures.
source "$ANNULET_SOURCE/tests/support/command.sh"

ANNULET_BUILD=$(dirname -- "$annulet") expect_success bash "$ANNULET_SOURCE/scripts/deck.sh"
cp "$work/log" "$work/deck"

losses() { sed -n "/mpirun -n $1 annulet train/,/^\\(\\$.*\\)\\?\$/s/^step [0-9]*  loss \\(.*\\)/\\1/p" "$work/deck"; }
[ "$(losses 1 | wc -l)" -eq 4 ] || fail "four losses of one rank are not shown"
paste <(losses 1) <(losses 4) | awk '{d = $1 / $2 - 1; if (d > 1e-5 || d < -1e-5) exit 1}' || fail "ranks change the losses"

shows() { grep -qE -- "$1" "$work/deck" || fail "does not show '$1'"; }
shows '^ +1048576 +262144 +float +ring .* 0 +1048576 +6291456 '  # none wrong; 2 (p-1) M bytes on the wire
shows '^rank 0   \*0123 +0\.23 +0\.\.3 +0\.\.\.$'     # step 3: each rank has finished one sum
shows '^sent: 384 B in all; by a rank 96 B'
shows '^all-reduce +ring +14 +52\.48 ms .* 23\.58 GB'
shows '^all-reduce +tree, closed form +12 +3\.235 s .* 26\.95 GB'
shows '^1 in 16, 32 \+ 32 bits +dense, 32 bits .* 16\.0 '
shows '^compressed by topk:16: .* wire 0\.250 of'  # p payload / (2 M) = 4 / 16
counted() { grep -A 6 -- "--zero $1 --out" "$work/deck" | sed -n "s/^ *$2 *//p"; }
for stage in 0 1 2 3; do
  counted $stage '= model states' | awk '$1 $2 != $3 $4 || NF != 4 {exit 1}' || fail "stage $stage holds other than planned"
done
[ "$(counted 0 'optimiser state')" != "$(counted 1 'optimiser state')" ] || fail "stage 1 keeps all of the optimiser's state"
grep -q '^losses differ by' "$work/deck" || fail "does not say how far losses on three ranks and on one differ"
shows '^identical$'
shows '^ +3 +0\.21 +0\.21 +1\.26 +1\.68 +39\.80 '
shows '^waiting for one all-reduce +2\.174 s .* 35\.7 %'
shows 'no overlap can hide it'
shows '^predicted from its launches: '
shows '^all [0-9]+ figures come out$'
