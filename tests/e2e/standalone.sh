#!/usr/bin/env bash
# One node: what a worker sees, exit codes, restarts, output, and that nothing is left, no matter how it ends.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun

say "four workers have every variable that torchrun gives"
run 20 --standalone --nproc-per-node=4 --no-label bash -c 'env | sort >"$0/env.$RANK"' "$work"
expect_code 0
# OMP_NUM_THREADS is 1 because common.sh sets it.
for rank in 0 1 2 3; do
    file=$work/env.$rank
    for line in "RANK=$rank" "LOCAL_RANK=$rank" WORLD_SIZE=4 LOCAL_WORLD_SIZE=4 GROUP_RANK=0 GROUP_WORLD_SIZE=1 \
        "ROLE_RANK=$rank" ROLE_WORLD_SIZE=4 ROLE_NAME=default 'MASTER_ADDR=.+' 'MASTER_PORT=[0-9]+' \
        TORCHELASTIC_RESTART_COUNT=0 'TORCHELASTIC_MAX_RESTARTS=[0-9]+' 'TORCHELASTIC_RUN_ID=.+' \
        TORCHELASTIC_USE_AGENT_STORE=True 'TORCHELASTIC_ERROR_FILE=.*' TORCH_NCCL_ASYNC_ERROR_HANDLING=1 \
        OMP_NUM_THREADS=1; do
        expect_in "$file" "^$line\$"
    done
done
expect_nothing_left

say "output lines carry the rank, stdout and stderr stay apart"
run 20 --standalone --nproc-per-node=2 bash -c 'echo "out of $RANK"; echo "err of $RANK" >&2'
expect_code 0
for rank in 0 1; do
    expect_in "$work/run.out" "^\[default$rank\]: ?out of $rank\$"
    expect_in "$work/run.err" "^\[default$rank\]: ?err of $rank\$"
done

say "the first worker's code is ddprun's, and the report names it"
run 20 --standalone --nproc-per-node=2 --max-restarts=0 \
    bash -c '((RANK == 1)) && { echo "woe is me" >&2; exit 7; }; sleep 300'
expect_code 7
expect_in "$work/run.err" 'rank 1'
expect_in "$work/run.err" '\b7\b'
expect_in "$work/run.err" 'woe is me'
expect_nothing_left

say "a worker killed by a signal gives 128 + its number"
run 20 --standalone --nproc-per-node=2 --max-restarts=0 bash -c '((RANK == 0)) && kill -SEGV $$; sleep 300'
expect_code 139
expect_in "$work/run.err" 'SIGSEGV'
expect_nothing_left

say "with --max-restarts=1 all workers restart, once"
run 20 --standalone --nproc-per-node=2 --max-restarts=1 bash -c '
    echo "generation $TORCHELASTIC_RESTART_COUNT"
    [[ $TORCHELASTIC_RESTART_COUNT != 0 ]] && exit 0
    ((RANK == 1)) && exit 9
    sleep 300'
expect_code 0
(($(grep -c 'generation 1$' "$work/run.out") == 2)) || fail "not both workers ran in generation 1"
# A job that always fails ends after its only restart.
run 20 --standalone --nproc-per-node=2 --max-restarts=1 bash -c 'echo "generation $TORCHELASTIC_RESTART_COUNT"; exit 9'
expect_code 9
expect_in "$work/run.out" 'generation 1$'
expect_not_in "$work/run.out" 'generation 2$'
expect_nothing_left

say "grandchildren in sessions of their own are gone at the end"
run 20 --standalone --nproc-per-node=2 bash -c '(setsid setsid sleep 301 </dev/null >/dev/null 2>&1 &) ; exit 0'
expect_code 0
expect_nothing_left

say "they are gone before the next generation starts, too"
run 20 --standalone --nproc-per-node=2 --max-restarts=1 bash -c '
    if [[ $TORCHELASTIC_RESTART_COUNT == 0 ]]; then
        (setsid setsid bash -c "echo \$\$ >$0/old.$RANK; exec sleep 302" </dev/null >/dev/null 2>&1 &)
        until [[ -s $0/old.$RANK ]]; do sleep 0.01; done
        exit 1
    fi
    for file in "$0"/old.*; do ! kill -0 "$(<"$file")" 2>/dev/null || exit 5; done' "$work"
# One of the two may be stopped before it has started its grandchild.
[[ -s $work/old.0 || -s $work/old.1 ]] || fail "no grandchild was started"
expect_code 0
expect_nothing_left

say "SIGTERM stops the workers politely, exit code 143"
start job --standalone --nproc-per-node=2 \
    bash -c 'trap "echo bye; exit 0" TERM; echo up; while :; do sleep 303 & wait; done'
wait_until 10 count_is "sleep 303" 2 || fail "the workers do not run"
kill -TERM "${pid[job]}"
join job 20
expect_code 143
(($(grep -c bye "$work/job.out") == 2)) || fail "not both workers had time to say good-bye"
expect_nothing_left

say "a worker that ignores SIGTERM is killed after the shutdown timeout"
start job --standalone --nproc-per-node=2 --shutdown-timeout=1 bash -c 'trap "" TERM; while :; do sleep 304; done'
wait_until 10 count_is "sleep 304" 2 || fail "the workers do not run"
kill -TERM "${pid[job]}"
join job 20
expect_code 143
expect_nothing_left

say "SIGKILL of ddprun leaves no worker and no grandchild"
# Each worker becomes a sleep, beside a child in a session of its own.
start job --standalone --nproc-per-node=2 bash -c '(setsid sleep 305 &) ; exec sleep 305'
# Two workers and two grandchildren.
wait_until 10 count_is "sleep 305" 4 || fail "the workers do not run"
kill -KILL "${pid[job]}"
join job 5
expect_nothing_left 5

say "a terminal that hangs up while ddprun ends does not end it earlier"
if command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null; then
    # Only the main thread is traced. It hears SIGHUP from the call on that installs its handler, and later calls take
    # the handlers back.
    traced() { strace -qq -o "$work/calls" -e trace=rt_sigaction "$@" "$ddprun" --standalone true >/dev/null 2>&1; }
    traced || fail "no job under strace"
    grep '^rt_sigaction' "$work/calls" >"$work/actions"
    first=$(grep -n -m1 '^rt_sigaction(SIGHUP, {sa_handler=0x' "$work/actions" | cut -d: -f1)
    for ((i = first; i <= $(wc -l <"$work/actions"); i++)); do
        traced -e inject="rt_sigaction:signal=HUP:when=$i" || true
        expect_not_in "$work/calls" 'killed by SIGHUP'
    done
fi
