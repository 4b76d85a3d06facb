#!/usr/bin/env bash
# annulet ring: plain text where there is no terminal, the same bytes and results as MPI's where there are ranks.
# shellcheck source=tests/support/command.sh
source "$ANNULET_SOURCE/tests/support/command.sh"
unset COLUMNS

shows() { grep -qF -- "$1" "$work/log" || fail "does not show '$1'"; }

# The ring of four: golden text, on the default link, without a control character.
expect_success "$annulet" ring --ranks 4 --elements 16
diff "$ANNULET_SOURCE/tests/cli/ring_of_four.txt" log || fail "the ring of four has changed"
NO_COLOR=1 expect_success "$annulet" ring --play
shows "step 6 of 6"

# Every collective and algorithm, drawn from the plans, and really run in this process.
for choice in all_reduce:ring all_reduce:recursive_doubling all_reduce:recursive_halving_doubling \
  all_reduce:binomial_tree all_reduce:pipelined_tree all_reduce:direct reduce_scatter:ring \
  reduce_scatter:recursive_halving reduce_scatter:direct all_gather:ring all_gather:recursive_doubling \
  all_gather:bruck all_gather:direct broadcast:binomial_tree broadcast:pipelined_chain reduce:binomial_tree \
  reduce:pipelined_chain sparse_all_gather:ring; do
  options=(--collective "${choice%:*}" --algorithm "${choice#*:}")
  for ranks in 1 3 8; do
    expect_success "$annulet" ring "${options[@]}" --ranks $ranks --elements 11 --show values
    shows "equal bit for bit to a plain sum"
  done
  expect_success "$annulet" ring "${options[@]}" --ranks 8 --elements 6738149376
done
for ranks in 2 4; do
  for options in "" "--collective reduce_scatter" "--collective all_gather --algorithm bruck" \
    "--collective broadcast --root 1" "--algorithm recursive_halving_doubling" "--collective sparse_all_gather"; do
    if [ $ranks -lt 4 ] && [[ $options == --collective* ]]; then continue; fi
    # shellcheck disable=SC2086
    expect_success launch $ranks "$annulet" ring --elements 13 $options
    shows "equal bit for bit to MPI_Allreduce"
    read -r counted shown < <(sed -n 's/^\([0-9]*\) B counted = \([0-9]*\) B shown$/\1 \2/p' log)
    [ "$counted" = "$shown" ] || fail "$counted bytes were counted, $shown shown"
    if grep -q $'\x1b' log; then fail "control characters where there is no terminal"; fi
  done
done
shows "p-1 times the payload"

# Real gradients: the sum is that of the global batch, whatever the ranks.
cat >run.toml <<'TOML'
steps = 3
batch = 8

[model]
widths = [5, 6, 3]

[data]
kind = "synthetic"
samples = 16
TOML
expect_success "$annulet" train --config run.toml --out trained
expect_success launch 4 "$annulet" ring --run trained --elements 8
shows "MPI_Allreduce"
shows "gradients of trained"
final() { awk '/^step/ {last = ""} {last = last "\n" $0} END {print last}' "$1" | grep '^rank 0' | tr -d '*='; }
final log >four
expect_success "$annulet" ring --ranks 4 --run trained --elements 8
final log >here
diff four here || fail "the gradients in one process are others than on four ranks"

expect_failure "--ranks 0 cannot be drawn" "$annulet" ring --ranks 0
expect_failure "all_reduce has no algorithm 'bruck'. It has: ring, recursive_doubling" "$annulet" ring --algorithm bruck
expect_failure "'all_to_all' is no collective" "$annulet" ring --collective all_to_all
expect_failure "--ranks 3 on 2 ranks" launch 2 "$annulet" ring --ranks 3
expect_failure "--lengths has 2 numbers for 3 ranks" "$annulet" ring --collective sparse_all_gather --ranks 3 --lengths 1,2
expect_failure "--lengths belongs to sparse_all_gather" "$annulet" ring --lengths 1,2
expect_failure "cuts the vector into 1000 segments" "$annulet" ring --elements 1000 --segment 1
expect_failure "too many to keep" "$annulet" ring --elements 1000000 --show values
expect_failure "--elements 100 is more than the 57 gradients" "$annulet" ring --run trained --elements 100
expect_failure "missing/config.toml is not there" "$annulet" ring --run missing
