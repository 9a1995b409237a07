#!/usr/bin/env bash
# ddprun-rendezvous outside the jobs. Two nodes meet there, crash, restart and end; it serves several jobs, one after
# the other and at the same time; a job of one node has a spare; strangers and wrong options are refused; the daemon
# itself is restarted and stopped.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
source "$e2e/daemon_common.sh"
need_built ddprun ddprun-rendezvous ddpctl

# Starts one node of a job: name, run id, more options and the worker. is_host=0: the node serves no rendezvous itself.
node() {
    local name=$1 run=$2; shift 2
    start "$name" --rdzv-endpoint="127.0.0.1:$at" --rdzv-conf=is_host=0 --rdzv-id="$run" --lease=2 --nproc-per-node=2 "$@"
}
# Starts both nodes of a run: run id, more options and the worker. The names become file names, so a slash becomes a
# dash.
both() {
    node "${1/\//-}.one" "$1" --nnodes=2 "${@:2}"
    node "${1/\//-}.two" "$1" --nnodes=2 "${@:2}"
}
# Waits for both nodes: run id, the exit code that both must have.
expect_both() {
    join "${1/\//-}.one" 30; expect_code "$2"
    join "${1/\//-}.two" 30; expect_code "$2"
}
# Whether the daemon has logged the end of a run: run id, code.
run_ended() { has "$work/daemon.err" "run \"$1\": has ended with code $2"; }
expect_run_ended() { wait_until 15 run_ended "$1" "$2" || fail "run $1 is not logged as ended with $2"; }

# Runs the daemon with wrong arguments and checks its one line: exit code, pattern that the line must contain,
# arguments.
refused() {
    local expected=$1 pattern=$2; shift 2
    code=0
    timeout 10 "$bin/ddprun-rendezvous" "$@" >"$work/run.out" 2>"$work/run.err" || code=$?
    expect_code "$expected"
    (($(wc -l <"$work/run.err") == 1)) || fail "not one line on stderr"
    expect_in "$work/run.err" "$pattern"
}
say "wrong options: one line that names each"
refused 2 'unknown option --nnodes.*--help' --nnodes=2
refused 2 '--listen=host:29400: expected ADDRESS:PORT' --listen=host:29400
refused 2 '--listen=1.2.3.4:70000' --listen 1.2.3.4:70000
refused 2 '--ledger=folder: not a ledger; give memory, directory:PATH' --ledger=folder
refused 2 '--listen needs a value' --listen
"$bin/ddprun-rendezvous" --help | grep -q -- '--serve-c10d' || fail "--help does not tell --serve-c10d"

say "what nobody gets is an error, so that a page made of it is not cut short unnoticed"
for option in --help --version; do
    code=0
    "$bin/ddprun-rendezvous" $option >/dev/full 2>"$work/run.err" || code=$?
    expect_code 69
    expect_in "$work/run.err" '^ddprun-rendezvous: standard output: No space left on device$'
    code=0
    "$bin/ddprun-rendezvous" $option 2>"$work/run.err" >&- || code=$?
    expect_code 69
    expect_in "$work/run.err" '^ddprun-rendezvous: standard output is closed'
done

say "a port in use gives code 69; SIGTERM to an idle daemon gives 0"
start_daemon
refused 69 "cannot listen on 127.0.0.1:$at: Address already in use" --listen="127.0.0.1:$at"
stop_daemon TERM
expect_code 0
start_daemon --ledger=directory:"$work/ledgers"

say "two nodes meet, one worker crashes, all restart and succeed"
both first --max-restarts=1 bash -c '
    echo "$RANK of $WORLD_SIZE in generation $TORCHELASTIC_RESTART_COUNT"
    [[ $TORCHELASTIC_RESTART_COUNT != 0 ]] && exit 0
    ((RANK == 3)) && exit 9
    sleep 306'
expect_both first 0
cat "$work"/first.*.out | grep -oE '. of 4 in generation 1' | sort | tr -d '\n' >"$work/seen.out"
expect_in "$work/seen.out" '^0 of 4 in generation 11 of 4 in generation 12 of 4 in generation 13 of 4 in generation 1$'
expect_run_ended first 0
expect_not_in "$work/daemon.err" 'cannot find the ledger' # no node of the job leads, so none has to find it
# Entries 0 to 2 are two generations and the end.
[[ -s $work/ledgers/first/entry-000002.json ]] || fail "the ledger of the run is not in its folder"

say "the same daemon serves the next job; all nodes exit with the code of its failure"
both next/job --max-restarts=0 bash -c '((RANK == 3)) && exit 7; sleep 307'
expect_both next/job 7
expect_run_ended next/job 7
[[ -d $work/ledgers/next%2Fjob ]] || fail "no ledger for a run id with a slash"
say "the run id of a job that has ended may be used again"
both first true
expect_both first 0
aside=("$work"/ledgers/first-finished-*)
[[ ${#aside[@]} == 1 && -d ${aside[0]} ]] || fail "the ledger of the finished run was not set aside"

say "two jobs at the same time: the failure of one does not touch the other"
both left bash -c 'echo >"$0/left.$RANK.$TORCHELASTIC_RESTART_COUNT"; until [[ -e $0/go ]]; do sleep 0.05; done' "$work"
all_up() { [[ -e $work/left.0.0 && -e $work/left.1.0 && -e $work/left.2.0 && -e $work/left.3.0 ]]; }
wait_until 20 all_up || fail "the workers of left do not run"
both right --max-restarts=0 false
expect_both right 1
touch "$work/go"
expect_both left 0
[[ ! -e $work/left.0.1 ]] || fail "left was started again"

say "a node with another --nnodes is named"
node odd.one odd --nnodes=2 true
wait_until 10 has "$work/daemon.err" 'run "odd": begins with' || fail "odd does not begin"
node odd.two odd --nnodes=1:3 true
expect_both odd 0
expect_in "$work/daemon.err" 'run "odd": the command line of node .*--nnodes=(1:3|2).*is not that'

say "a job of one node: a second node is its spare and replaces it when it is lost"
node alone.one alone --nnodes=1 bash -c '
    echo "$WORLD_SIZE workers, generation $TORCHELASTIC_RESTART_COUNT"; until [[ -e $0/go2 ]]; do sleep 0.05; done' "$work"
wait_until 10 has "$work/alone.one.out" '2 workers, generation 0' || fail "the first does not run"
node alone.two alone --nnodes=1 bash -c 'echo "generation $TORCHELASTIC_RESTART_COUNT"' "$work"
kill -KILL "${pid[alone.one]}"
join alone.one 5
join alone.two 20
expect_code 0
expect_in "$work/alone.two.out" 'generation 1$'
expect_run_ended alone 0

say "strangers are refused, each address is logged once; c10d is served only on request"
# Sends bytes as a stranger: text for printf.
talk() { (exec 3<>"/dev/tcp/127.0.0.1/$at"; printf "$1" >&3; timeout 5 cat <&3 >/dev/null) 2>/dev/null || true; }
# The first bytes of c10d, HTTP, a frame that says it has 4 GiB, an opening that is cut off.
for text in '\x00\xce\xf7\x85\x3c' 'GET / HTTP/1.0\r\n\r\n' 'DDPRUN\x01\n\xff\xff\xff\xff' 'DDP'; do talk "$text"; done
expect_in "$work/daemon.err" 'closed the connection of 127.0.0.1:[0-9]+, which speaks c10d.*--serve-c10d only'
(($(grep -c 'closed the connection of 127.0.0.1' "$work/daemon.err") == 1)) || fail "the stranger was named more than once"

say "the daemon restarts during a job: with a ledger in a folder no worker is stopped"
both on bash -c 'echo "generation $TORCHELASTIC_RESTART_COUNT"; until [[ -e $0/go3 ]]; do sleep 0.05; done' "$work"
on_runs() { [[ $(cat "$work"/on.*.out | grep -c 'generation 0') == 4 ]]; }
wait_until 20 on_runs || fail "the workers of on do not run"
stop_daemon KILL
start_daemon --listen="127.0.0.1:$at" --ledger=directory:"$work/ledgers"
wait_until 10 has "$work/daemon.err" 'run "on": generation 0 continues under this leader' || fail "on is not taken over"
touch "$work/go3"
expect_both on 0
expect_not_in "$work/on.one.out" 'generation 1'
expect_run_ended on 0

say "the daemon comes back too late: the workers have stopped at the end of their lease, and restart"
both late bash -c 'echo "generation $TORCHELASTIC_RESTART_COUNT"; [[ $TORCHELASTIC_RESTART_COUNT != 0 ]] || sleep 309'
wait_until 20 count_is "sleep 309" 4 || fail "the workers of late do not run"
stop_daemon KILL
wait_until 10 count_is "sleep 309" 0 || fail "the workers of late outlive their lease"
start_daemon --listen="127.0.0.1:$at" --ledger=directory:"$work/ledgers"
expect_both late 0
expect_in "$work/late.one.out" 'generation 1'

say "the daemon restarts with its ledger in memory: the job ends at once, with 69 and the reason"
stop_daemon TERM
start_daemon --listen="127.0.0.1:$at"
both memory sleep 310
wait_until 20 count_is "sleep 310" 4 || fail "the workers of memory do not run"
stop_daemon KILL
start_daemon --listen="127.0.0.1:$at"
expect_both memory 69
expect_in "$work/memory.one.err" 'was restarted with the ledger in memory; --ledger=directory:PATH or'
# Both nodes are on one host, so the sentence is the same, and said once while one run refuses them.
(($(grep -c 'refused a node' "$work/daemon.err") <= 2)) || fail "a node was refused more than once"
expect_in "$work/daemon.err" 'refused a node'
stop_daemon TERM
start_daemon

say "an operator asks a run by its id, and the nodes of its ranks; in its working directory he needs no address"
(umask 077; head -c 32 /dev/urandom | base64 >"$work/ours")
stop_daemon TERM
start_daemon --secret-file="$work/ours"
# Runs ddpctl: arguments… Sets code; output in $work/ctl.out and ctl.err.
ctl() {
    code=0
    timeout 60 "$bin/ddpctl" "$@" --secret-file="$work/ours" >"$work/ctl.out" 2>"$work/ctl.err" </dev/null || code=$?
}
mkdir "$work/here"
cd "$work/here"
node asked.one asked --nnodes=2 --node-rank=0 --secret-file="$work/ours" sleep 311
node asked.two asked --nnodes=2 --node-rank=1 --secret-file="$work/ours" sleep 311
asked_runs() { ctl status "$@" && has "$work/ctl.out" '^generation  0 runs since .* with 4 workers'; }
wait_until 20 asked_runs --rdzv-endpoint="127.0.0.1:$at" || fail "the only run is not found"
asked_runs || fail "it is not found in its working directory"
ctl stacks 3
expect_code 0
both other --secret-file="$work/ours" sleep 312
other_runs() { ctl status --rdzv-endpoint="127.0.0.1:$at" --rdzv-id=other && has "$work/ctl.out" '^generation  0 runs'; }
wait_until 20 other_runs || fail "the run other is not found"
ctl status --rdzv-endpoint="127.0.0.1:$at"
expect_code 69
expect_in "$work/ctl.err" '2 jobs meet here; name one with --rdzv-id: asked, other'
ctl stop --rdzv-endpoint="127.0.0.1:$at" --rdzv-id=other
expect_code 0
expect_both other 143
asked_runs || fail "the other run was stopped, too"
ctl stop
expect_code 0
expect_both asked 143
[[ ! -e .ddprun ]] || fail "left: $(ls -A .ddprun)"
cd "$work"
stop_daemon TERM
start_daemon

say "SIGTERM during a job: the daemon exits with 143, the nodes find no leader and exit with 69"
both cut sleep 308
wait_until 20 count_is "sleep 308" 4 || fail "the workers do not run"
stop_daemon TERM
expect_code 143
expect_in "$work/daemon.err" 'stopped by SIGTERM; still served: run "cut", 0 c10d connections'
expect_both cut 69
expect_nothing_left
