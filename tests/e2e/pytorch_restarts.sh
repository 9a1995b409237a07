#!/usr/bin/env bash
# Every generation meets in a store of its own: a gloo job of two workers is restarted 5 times (100 with DDPRUN_LONG),
# and no meeting hangs or fails. Argument: debian or current.
source "$(dirname "${BASH_SOURCE[0]}")/pytorch_common.sh"
need_built ddprun
with_fork_server
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

export PET_WARM=off
# A script that reports nothing: it meets, and dies in its first generation, in each one, or before it has met.
cat >"$work/script.py" <<'END'
import os, sys, time
import torch, torch.distributed as dist
rank, generation = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
if sys.argv[1] == "import" and rank == 1:
    import no_such_module
dist.init_process_group("gloo")
total = torch.ones(1)
dist.all_reduce(total)
if rank == 1 and (sys.argv[1] == "always" or generation == 0):
    os._exit(3)
dist.all_reduce(total)
os._exit(0)
END
say "a script that reports nothing is restarted by default once its workers have met"
run 60 --standalone --nproc-per-node=2 "$work/script.py" once
expect_code 0
expect_in "$work/run.err" 'restart 1 of 3 \(--max-restarts=auto: the workers had met, or run for half a minute\)'
say "if it dies of the same cause again, it is given up"
run 60 --standalone --nproc-per-node=2 "$work/script.py" always
expect_code 3
expect_in "$work/run.err" 'crash loop: 2 generations in a row .*--crash-loop.*DDPRUN_PROGRESS_FD'
say "a failure before the workers have met is the script's own"
run 60 --standalone --nproc-per-node=2 "$work/script.py" import
expect_code 1
expect_in "$work/run.err" "no restart: the workers had not all met yet"
expect_in "$work/run.err" "No module named 'no_such_module'"
expect_nothing_left 5
