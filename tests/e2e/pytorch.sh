#!/usr/bin/env bash
# A PyTorch script under ddprun: init_process_group("gloo") and all_reduce, with a crash and a restart, on one node and
# on two. Argument: debian (python3-torch) or current (the virtual environment of tests/run.sh).
source "$(dirname "${BASH_SOURCE[0]}")/pytorch_common.sh"
need_built ddprun

say "the sum over four ranks, on one node"
run 100 --standalone --nproc-per-node=4 "$e2e/all_reduce.py"
expect_code 0
# 1 + 2 + 3 + 4.
(($(grep -c 'generation 0: sum 10' "$work/run.out") == 4)) || fail "not all four ranks have the sum"
expect_nothing_left 5

with_fork_server
say "one rank crashes, and all four meet again in an empty store"
run 100 --standalone --nproc-per-node=4 --max-restarts=1 "$e2e/all_reduce.py" --crash-once
expect_code 0
(($(grep -c 'generation 1: sum 10' "$work/run.out") == 4)) || fail "not all four ranks ended in generation 1"
expect_nothing_left 5

say "the same on two nodes"
at=$(free_port)
for rank in 0 1; do
    start "node$rank" --nnodes=2 --node-rank="$rank" --rdzv-endpoint="127.0.0.1:$at" --nproc-per-node=2 \
        --max-restarts=1 "$e2e/all_reduce.py" --crash-once
done
for rank in 0 1; do
    join "node$rank" 100
    expect_code 0
    (($(grep -c 'generation 1: sum 10' "$work/node$rank.out") == 2)) || fail "not both ranks ended in generation 1"
done
expect_nothing_left 5
