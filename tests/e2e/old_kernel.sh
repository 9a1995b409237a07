#!/usr/bin/env bash
# ddprun on Linux 3.10 (CentOS 7), as far as that can be played: every system call that is newer is refused, and files
# without a name, too. A job of two nodes that find each other by name; its failures, its operator, and warm starts.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
source "$e2e/warm_common.sh"
need_built ddprun ddpctl
need_program python3
deny=$bin/../tests/deny_calls
[[ $(uname -m) == x86_64 ]] || skip "the filter knows the system calls of x86-64 only"
cd "$work"
# From here on all programs that the test starts as ddprun are on the old kernel, and so are their workers.
for name in ddprun ddpctl; do
    printf '#!/bin/sh\nexec %q ENOSYS linux-3.10 %q "$@"\n' "$deny" "$bin/$name" >"$work/$name"
    chmod +x "$work/$name"
done
ddprun=$work/ddprun

say "the filter holds"
code=0
"$deny" ENOSYS linux-3.10 python3 -c 'import os; os.memfd_create("x")' 2>"$work/filter.err" || code=$?
expect_code 1
expect_in "$work/filter.err" 'Function not implemented'

say "small programs, without the descriptors that tell of their end"
"$deny" ENOSYS linux-3.10 "$bin/../tests/base_child_program_test" >"$work/programs.out" 2>&1 || fail "they fail"

# Starts a node: name, rank, more options and the worker.
at=$(free_port)
node() {
    local name=$1 rank=$2; shift 2
    start "$name" --nnodes=2 --node-rank="$rank" --rdzv-endpoint="localhost:$at" --rdzv-id=old --lease=2 \
        --ledger="directory:$work/.ddprun" --nproc-per-node=2 "$@"
}

say "two nodes; a worker that fails restarts all four, and what it leaves running is killed"
# shellcheck disable=SC2016
worker=(bash -c '
    echo "$RANK/$WORLD_SIZE of $TORCHELASTIC_RESTART_COUNT"
    ((TORCHELASTIC_RESTART_COUNT > 0)) || { setsid sleep 311 & ((RANK != 3)) || exit 9; exec sleep 312; }
    touch "$0/up.$RANK"; until [[ -e $0/go ]]; do sleep 0.05; done' "$work")
node one 0 --max-restarts=1 "${worker[@]}"
node two 1 --max-restarts=1 "${worker[@]}"
all_up() { [[ -e $work/up.0 && -e $work/up.1 && -e $work/up.2 && -e $work/up.3 ]]; }
wait_until 30 all_up || fail "the second generation does not run"
count_is "sleep 311" 0 || fail "something of the first generation lives"
for rank in 0 1 2 3; do expect_in <(cat "$work"/{one,two}.out) "$rank/4 of 1\$"; done

say "ddpctl asks the job"
code=0
timeout 20 "$work/ddpctl" status >"$work/ctl.out" 2>"$work/ctl.err" || code=$?
expect_code 0
expect_in "$work/ctl.out" 'generation  1 runs'
touch "$work/go"
for name in one two; do join "$name" 30; expect_code 0; done
expect_nothing_left

say "where TLS finds no random numbers, ddpctl gets no answer, and the job goes on"
rm -f "$work"/{go,up.*}
DDPRUN_TEST_MARK=$mark "$deny" ENOSYS getrandom "$bin/ddprun" --nnodes=1 --rdzv-endpoint=127.0.0.1:0 --rdzv-id=sandbox \
    --ledger="directory:$work/.sandbox" --nproc-per-node=1 bash -c 'touch "$0/up.0"; until [[ -e $0/go ]]; do
    sleep 0.05; done' "$work" >"$work/job.out" 2>"$work/job.err" </dev/null &
pid[job]=$!
wait_until 20 test -e "$work/up.0" || fail "the worker does not run"
for way in "" "$deny ENOSYS getrandom"; do
    code=0
    # shellcheck disable=SC2086
    timeout 20 $way "$bin/ddpctl" status --ledger="$work/.sandbox" >"$work/ctl.out" 2>"$work/ctl.err" || code=$?
    ((code != 0 && code != 124)) || fail "ddpctl ended with $code"
    expect_not_in "$work/ctl.err" 'unexpected'
done
expect_in "$work/ctl.err" '^ddpctl: .*TLS does not work on this host'
expect_in "$work/job.err" 'an operator cannot be served: TLS does not work on this host'
touch "$work/go"
join job 20
expect_code 0
expect_nothing_left

say "a frozen ddprun: its keeper kills the workers, and then it; the other node ends with a reason"
at=$(free_port)
rm -f "$work"/up.*
node one 0 --join-timeout=2 sleep 313
node two 1 --join-timeout=2 sleep 313
wait_until 20 count_is "sleep 313" 4 || fail "the workers do not run"
# The wrapper has become deny_calls and then ddprun, so this is ddprun itself.
kill -STOP "${pid[two]}"
join two 20
expect_code 137
join one 30
expect_code 69
expect_nothing_left 5

say "a stop reaches the workers"
start job --standalone --nproc-per-node=2 bash -c 'trap "exit 0" TERM; touch "$0/ready.$RANK"
    while :; do sleep 0.05; done' "$work"
both_up() { [[ -e $work/ready.0 && -e $work/ready.1 ]]; }
wait_until 20 both_up || fail "the workers do not run"
kill -TERM "${pid[job]}"
join job 20
expect_code 143
expect_nothing_left

say "warm starts"
new_python
package mpmath 1.3.0 <<<'VALUE = 1' # a package that a server may import early
cat >"$work/warm.py" <<'PY'
import os, sys
import mpmath
print("rank", os.environ["RANK"], "generation", os.environ["TORCHELASTIC_RESTART_COUNT"], flush=True)
os.write(int(os.environ["DDPRUN_PROGRESS_FD"]), b"step=1\n")
sys.exit(3 if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" else 0)
PY
run 60 --standalone --nproc-per-node=2 --max-restarts=1 --warm=always -v --python "$python" "$work/warm.py"
expect_code 0
expect_in "$work/run.err" 'a fork server for warm starts is ready'
expect_not_in "$work/run.err" 'cold, because'
for rank in 0 1; do expect_in "$work/run.out" "rank $rank generation 1"; done
expect_nothing_left 5
