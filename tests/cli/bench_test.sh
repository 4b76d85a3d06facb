#!/usr/bin/env bash
# annulet calibrate writes what annulet bench predicts with; both refuse what makes no sense.
# shellcheck source=tests/support/command.sh
source "$ANNULET_SOURCE/tests/support/command.sh"

expect_success launch 2 "$annulet" calibrate --emulate alpha=1ms,bandwidth=200MB/s --out machine.toml
grep -q '^\[inside\]' machine.toml || fail "no link in the machine file"
expect_success launch 3 "$annulet" bench --collective reduce_scatter --emulate alpha=1ms,bandwidth=200MB/s \
  --machine machine.toml --min-bytes 1KiB --max-bytes 2KiB
grep -q "MPI's own collectives are left out" log || fail "does not say that MPI's own are left out"
grep -q 'median |residual|' log || fail "no residual"

expect_success launch 2 "$annulet" bench --min-bytes 4 --max-bytes 16 --type int32 --json rows.json --csv rows.csv
[ "$(grep -c '"algorithm": "ring"' rows.json)" -eq 3 ] || fail "three sizes of the ring in the JSON"
[ "$(grep -c '"wrong": 0' rows.json)" -eq 6 ] || fail "six rows without a wrong element"
[ "$(grep -c '^all_reduce,mpi,.*,int32,2,' rows.csv)" -eq 3 ] || fail "three sizes of MPI's own in the CSV"

expect_success launch 3 "$annulet" bench --collective all --algorithm all,auto --min-bytes 1200 --max-bytes 1200 \
  --type bfloat16 --op max --root 1 --csv all.csv
grep -q 'MPI has no bfloat16' log || fail "does not say why MPI's own are left out"
[ "$(wc -l <all.csv)" -eq 23 ] || fail "17 algorithms and 5 choices"
grep -q '^broadcast,pipelined_chain,1200,600,bfloat16,3,.*,2400,2400,' all.csv || fail "two hops of 1200 bytes"
grep -q 'auto chooses by assumed shared memory' log || fail "does not say what auto stands on"
expect_success launch 2 "$annulet" bench --algorithm 'recursive_doubling:0-64;direct:65-max,ring' --min-bytes 64 \
  --max-bytes 128 --csv told.csv
grep -q '^all_reduce,auto,64,.*,recursive_doubling,' told.csv || fail "64 bytes by recursive doubling"
grep -q '^all_reduce,auto,128,.*,direct,' told.csv || fail "128 bytes directly"
grep -q 'auto: direct, segments of 65.54 kB (as asked for)' log || fail "does not say why"

expect_success "$annulet" bench --collective all_gather --max-bytes 8
grep -q 'one rank: nothing is sent' log || fail "one rank sends nothing, and says so"
expect_failure "one rank has no link to calibrate" "$annulet" calibrate
expect_failure "'all_to_all' is no collective" "$annulet" bench --collective all_to_all
expect_failure "none of the collectives has an algorithm bruck" "$annulet" bench --algorithm bruck
expect_failure "is for one collective" "$annulet" bench --collective all --algorithm ring:0-max
expect_failure "--root 1 is no rank" "$annulet" bench --collective reduce --root 1
expect_failure "there is nothing to run" "$annulet" bench --algorithm mpi --emulate alpha=1ms,bandwidth=1MB/s
expect_failure "has no size" "$annulet" bench --min-bytes 9 --max-bytes 8
