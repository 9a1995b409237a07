#!/usr/bin/env bash
# PyTorch's process group with 2, 4 and 16 ranks over our store, and a DDP step. Argument: debian or current.
source "$(dirname "${BASH_SOURCE[0]}")/pytorch_common.sh"
need_built ddprun

for ranks in 2 4 16; do
    say "$ranks ranks meet, and a DDP step gives the mean gradient"
    run 200 --standalone --nproc-per-node="$ranks" "$e2e/ddp_step.py"
    expect_code 0
    expect_in "$work/run.out" "^.*$ranks ranks: step done"
    expect_nothing_left 5
done
