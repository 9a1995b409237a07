#!/usr/bin/env bash
# Every generation meets in a store of its own: a gloo job of two workers is restarted 5 times (100 with DDPRUN_LONG),
# and no meeting hangs or fails. Argument: debian or current.
source "$(dirname "${BASH_SOURCE[0]}")/pytorch_common.sh"
need_built ddprun
restarts=5
[[ -z ${DDPRUN_LONG:-} ]] || restarts=100

say "$restarts restarts, and both ranks meet in each generation"
run $((60 + restarts * 15)) --standalone --nproc-per-node=2 --max-restarts="$restarts" \
    "$e2e/crash_each_generation.py" "$restarts"
expect_code 0
for ((generation = 0; generation <= restarts; ++generation)); do
    (($(grep -c "generation $generation: rank . met" "$work/run.out") == 2)) ||
        fail "not both ranks met in generation $generation"
done
expect_nothing_left 5
