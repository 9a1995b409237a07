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

# Ranks whose handler of SIGTERM calls a collective, as Lightning's does: each waits for the other in another group.
# Debian's PyTorch does not name Gloo's threads, so ddprun does not see there who is in a collective.
[[ ${1:-debian} == current ]] || exit 0
cat >"$work/handler.py" <<'END'
import os, signal, sys, time
import torch, torch.distributed as dist
rank = int(os.environ["RANK"])
dist.init_process_group("gloo")
pairs = [dist.new_group([0, 1]) for _ in range(2)]
def save(number, frame):
    open(f"{sys.argv[1]}/handler.{rank}", "w").close()
    dist.all_reduce(torch.ones(1), group=pairs[rank])
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    if rank < 2:
        signal.signal(signal.SIGTERM, save)
    dist.all_reduce(torch.ones(1))
    if rank == 2:
        os._exit(3)
    while True:
        time.sleep(0.05)
os._exit(0)
END
say "survivors that call a collective when they are asked to stop are not waited for"
run 150 --standalone --nproc-per-node=3 --shutdown-timeout=50 "$work/handler.py" "$work"
expect_code 0
[[ -e $work/handler.0 && -e $work/handler.1 ]] || fail "the handlers have not run"
expect_in "$work/run.err" 'wait in a collective for one that has died; killing them'
expect_nothing_left 5
