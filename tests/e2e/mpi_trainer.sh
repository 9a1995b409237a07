#!/usr/bin/env bash
# The trainer's process group over MPI under --pmi: on one node and on two a rank is killed, and all train again.
source "$(dirname "${BASH_SOURCE[0]}")/mpi_common.sh"
need_built ddprun smallest_mpi
program=$bin/../tests/mpi_trainer

say "a killed rank: the others name it, and all are started again"
run 60 --standalone --nproc-per-node=3 --pmi --max-restarts=1 "$program"
expect_code 0
expect_in "$work/run.err" 'rank 2 .*SIGKILL'
expect_times 'generation 1 rank [02] of 3: 120, half 2$' 2
expect_times 'generation 1 rank 1 of 3: 120, half 1$' 1

say "two nodes"
two_nodes --pmi -- --nproc-per-node=2 --max-restarts=1 --lease=5 "$program"
join_both 90
expect_times 'generation 1 rank [0-3] of 4: 200, half 2$' 4

say "without --pmi it is refused, with what to do"
run 60 --standalone --nproc-per-node=2 --max-restarts=0 "$bin/smallest_mpi"
expect_code 2
expect_in "$work/run.err" 'this process is rank 0 of 1 to MPI, and rank [01] of 2 to its launcher; start it with ddprun --pmi'
expect_nothing_left
