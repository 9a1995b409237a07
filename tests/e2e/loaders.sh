#!/usr/bin/env bash
# A DDP script with DataLoaders of a real PyTorch (debian or current) saves at a stop, and goes on after SIGUSR1: the
# loaders get neither signal.
source "$(dirname "${BASH_SOURCE[0]}")/pytorch_common.sh"
need_built ddprun

up() { [[ -e $work/up.0 && -e $work/up.1 ]]; }
# Starts the script, sends a signal when both ranks train, and waits for the end: signal, context, then, options…
play() {
    local signal=$1 context=$2 then=$3; shift 3
    rm -f "$work"/{up,saved}.*
    start job --standalone --nproc-per-node=2 --max-restarts=0 "$@" "$e2e/loaders.py" "$work" "$context" "$then"
    wait_until 90 up || fail "the ranks do not train"
    kill -"$signal" "${pid[job]}"
    join job 90
    [[ -e $work/saved.0 && -e $work/saved.1 ]] || fail "not both have saved"
    (($(grep -c 'left in good order' "$work/job.out") == 2)) || fail "not both have left in good order"
    # Of no signal of ours. One may abort of itself when its interpreter ends (pytorch issue 190489).
    grep 'DataLoader worker' "$work/job.err" | grep -v 'killed by signal: Aborted' && fail "a loader has died"
    expect_nothing_left 10
}

for warm in off always; do
    say "SIGTERM: the ranks save and leave (--warm=$warm)"
    play TERM fork save --warm=$warm
    expect_code 143
done
for context in fork forkserver spawn; do
    say "SIGUSR1: the ranks go on with their loaders ($context)"
    play USR1 $context go_on
    expect_code 0
done
