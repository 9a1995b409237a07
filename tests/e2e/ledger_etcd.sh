#!/usr/bin/env bash
# Two nodes whose ledger is a real etcd, which is killed, frozen and started again during the job.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun ddprun-rendezvous ddpctl
need_program etcd
need_program etcdctl

etcd_port=$(free_port) peer_port=$(free_port) etcd_pid=
export http_proxy=http://127.0.0.1:9 # must not be used for etcd; nobody listens there
etcd_answers() { ETCDCTL_API=3 etcdctl --endpoints="127.0.0.1:$etcd_port" endpoint health >/dev/null 2>&1; }
# One server. The short times let it lead itself at once.
start_etcd() {
    etcd --data-dir "$work/etcd" --listen-client-urls "http://127.0.0.1:$etcd_port" \
        --advertise-client-urls "http://127.0.0.1:$etcd_port" --listen-peer-urls "http://127.0.0.1:$peer_port" \
        --initial-advertise-peer-urls "http://127.0.0.1:$peer_port" --initial-cluster "default=http://127.0.0.1:$peer_port" \
        --heartbeat-interval 10 --election-timeout 100 >>"$work/etcd.log" 2>&1 &
    etcd_pid=$!
    wait_until 20 etcd_answers || fail "etcd does not answer: $(tail -n 3 "$work/etcd.log")"
}
kill_etcd() {
    kill -KILL "$etcd_pid"
    wait "$etcd_pid" 2>/dev/null || true
    etcd_pid=
}
# etcd does not have the mark, so common.sh does not end it.
clean_up() { [[ -z $etcd_pid ]] || kill -KILL "$etcd_pid"; }
# How many entries a ledger in etcd has: run id.
keys() { ETCDCTL_API=3 etcdctl --endpoints="127.0.0.1:$etcd_port" get --prefix "ddprun/$1/" --keys-only | grep -c entry; }

# Starts both nodes of a run: run id, worker. The second node has etcd by name, as the second of two endpoints; nobody
# listens at the first one.
both() {
    local id=$1 at; shift
    at=$(free_port)
    local options=(--nnodes=2 --rdzv-endpoint="127.0.0.1:$at" --rdzv-id="$id" --lease=2 --max-restarts=3 --nproc-per-node=1)
    start one --node-rank=0 --ledger="etcd:127.0.0.1:$etcd_port" "${options[@]}" "$@"
    start two --node-rank=1 --ledger="etcd:127.0.0.1:9,localhost:$etcd_port" "${options[@]}" "$@"
}
# Waits for both nodes, and that nothing is left: the exit code of both.
expect_both() {
    join one 40; expect_code "$1"
    join two 40; expect_code "$1"
    expect_nothing_left
}
# In generation 0 the worker runs until the test lets it go on; then rank 1 crashes. In later generations it succeeds.
worker=(bash -c '
    echo "$RANK" >"$0/up.$TORCHELASTIC_RESTART_COUNT.$RANK"
    [[ $TORCHELASTIC_RESTART_COUNT != 0 ]] && exit 0
    until [[ -e $0/go ]]; do sleep 0.05; done
    ((RANK == 1)) && exit 9
    exec sleep 306' "$work")
up() { [[ -e $work/up.$1.0 && -e $work/up.$1.1 ]]; }
# A create whose answer was lost may have succeeded. Then its generation is skipped, and the next one runs.
up_again() { up 1 || up 2; }
# Starts a job and waits until it runs: run id.
begin() {
    rm -f "$work"/up.* "$work/go"
    both "$1" "${worker[@]}"
    wait_until 20 up 0 || fail "the workers do not run"
}

say "etcd restarts while workers run, and a worker crashes after that"
start_etcd
begin "$mark.1"
# The name of a thread of gRPC. The last story checks that other jobs do not have it.
grep -q . /proc/"${pid[one]}"/task/*/comm && grep -qx nexting_thread /proc/"${pid[one]}"/task/*/comm || fail "gRPC does not run"
kill_etcd
count_is "sleep 306" 0 || fail "a worker ended"
start_etcd
touch "$work/go"
expect_both 0
up 1 || fail "there was no generation 1"
(($(keys "$mark.1") == 3)) || fail "not two generations and an end in etcd"
expect_not_in "$work/one.err" 'cannot find the ledger'

say "ddpctl reads ledgers in etcd"
ctl() { code=0; timeout 60 "$bin/ddpctl" "$@" >"$work/ctl.out" 2>"$work/ctl.err" </dev/null || code=$?; }
ctl jobs --ledger="etcd:127.0.0.1:$etcd_port"
expect_code 0
expect_in "$work/ctl.out" "^$mark.1 +succeeded +1 +1 "
ctl history --ledger="etcd:127.0.0.1:$etcd_port"
expect_code 0
expect_in "$work/ctl.out" "^$mark.1: succeeded\$"
expect_in "$work/ctl.out" 'generation 1: 2 nodes, .*cause: .*exited with 9'
expect_in "$work/ctl.out" 'restarts by cause: 1 failed worker'
ctl status --ledger="etcd:127.0.0.1:$etcd_port/$mark.1"
expect_code 1
expect_in "$work/ctl.err" 'the job has ended with code 0'
ctl jobs --ledger=etcd:127.0.0.1:9
expect_code 69
expect_in "$work/ctl.err" '127.0.0.1:9: .*Connection refused'

say "a worker crashes while etcd is down: the log says so, and the job continues when etcd is back"
begin "$mark.2"
kill_etcd
touch "$work/go"
wait_until 20 has "$work/one.err" 'ledger: etcd 127.0.0.1:[0-9]+: .*Connection refused.*trying again' || fail "nothing is said"
# A generation that is not in the ledger must not start.
up 1 && fail "a generation began that no ledger has"
start_etcd
expect_both 0
up_again || fail "there was no next generation"

say "a worker crashes while etcd is frozen"
begin "$mark.3"
# A frozen etcd accepts connections and never answers.
kill -STOP "$etcd_pid"
frozen() { [[ $(sed 's/.*) //; s/ .*//' "/proc/$etcd_pid/stat") == T ]]; }
wait_until 10 frozen || fail "etcd does not freeze"
touch "$work/go"
wait_until 20 has "$work/one.err" 'no answer within 2(\.0)? s' || fail "nothing is said"
up 1 && fail "a generation began that no ledger has"
kill -CONT "$etcd_pid"
expect_both 0
up_again || fail "there was no next generation"

say "the same run id again: the finished ledger stays, and another one begins"
both "$mark.1" "${worker[@]}"
expect_both 0
expect_in "$work/one.err" "ledger ddprun/$mark.1/2/ in etcd begins; ddprun/$mark.1/1/ belongs to a job that has ended"

say "the leader's node is lost: another node leads with the same ledger"
# Starts a job of three nodes and waits until all run and the other two have found the ledger: run id.
three() {
    local id=$1 at name rank=0
    at=$(free_port)
    rm -f "$work"/up.*
    for name in one two three; do
        start "$name" --node-rank="$((rank++))" --nnodes=2:3 --last-call=20 --rdzv-endpoint="127.0.0.1:$at" --rdzv-id="$id" \
            --lease=4 -v --ledger="etcd:127.0.0.1:$etcd_port" \
            bash -c 'echo >"$0/up.$TORCHELASTIC_RESTART_COUNT.$RANK"; ((TORCHELASTIC_RESTART_COUNT > 0)) || exec sleep 307' "$work"
    done
    wait_until 30 all_up || fail "the workers do not run"
    for name in two three; do
        wait_until 20 has "$work/$name.err" 'it can take over' || fail "$name does not find its leader's ledger"
    done
}
all_up() { [[ -e $work/up.0.0 && -e $work/up.0.1 && -e $work/up.0.2 ]]; }
# Waits for the two nodes that are left.
expect_end() {
    local name
    for name in two three; do join "$name" 40; expect_code 0; done
    wait "${pid[one]}" 2>/dev/null || true
    rm -rf "$TMPDIR"/ddprun_* # on the lost node nobody is left to remove its folder
    expect_nothing_left
}
three "$mark.6"
kill_tree "${pid[one]}"
expect_end
grep -qh 'this node leads now' "$work/two.err" "$work/three.err" || fail "nobody took the lead"
(($(keys "$mark.6") == 3)) || fail "not two generations and an end in etcd"
expect_not_in "$work/one.err" 'cannot find the ledger'

say "etcd and the leader's node are lost: another node leads, and the job continues when etcd is back"
three "$mark.7"
kill_etcd
kill_tree "${pid[one]}"
wait_until 30 grep -q 'cannot read the ledger: etcd' "$work/two.err" "$work/three.err" || fail "nobody took the lead"
start_etcd
expect_end

say "--check finds the node that does not reach the etcd of the others"
# Runs a check on two nodes: the second node's endpoint of etcd.
check() {
    local name options
    options=(--check --nnodes=2 --rdzv-endpoint="127.0.0.1:$(free_port)" --rdzv-id="$mark.8")
    start one --node-rank=0 --ledger="etcd:127.0.0.1:$etcd_port" "${options[@]}"
    start two --node-rank=1 --ledger="etcd:$1" "${options[@]}"
    for name in one two; do join "$name" 40; done
    expect_nothing_left
}
check "localhost:$etcd_port"
expect_code 0
expect_in "$work/one.out" "^  ledger +ok +etcd:127.0.0.1:$etcd_port"
# Nobody listens there.
check 127.0.0.1:9
expect_code 69
expect_in "$work/one.out" '^  ledger +WRONG'
expect_in "$work/one.out" "^ +[^ ]+: cannot see the leader's ledger: etcd 127.0.0.1:9: Connection refused; check that"

say "a rendezvous outside the job has its ledgers in etcd, too"
at=$(free_port)
DDPRUN_TEST_MARK=$mark "$bin/ddprun-rendezvous" --listen="127.0.0.1:$at" --ledger="etcd:127.0.0.1:$etcd_port" \
    >"$work/daemon.out" 2>"$work/daemon.err" &
pid[daemon]=$!
for name in one two; do
    start "$name" --nnodes=2 --rdzv-conf=is_host=false --rdzv-endpoint="127.0.0.1:$at" --rdzv-id="$mark/5" --lease=2 \
        --join-timeout=10 true
done
for name in one two; do join "$name" 30; expect_code 0; done
(($(keys "$mark%2F5") == 2)) || fail "not one generation and an end in etcd"
expect_not_in "$work/daemon.err" 'cannot find the ledger'
kill "${pid[daemon]}"
join daemon 10; expect_code 0
expect_nothing_left

say "etcd is down at the start: both nodes end at once, and say what to do"
kill_etcd
both "$mark.4" true
for name in one two; do join "$name" 20; expect_code 69; done
expect_in "$work/two.err" 'cannot open the ledger: '
expect_in "$work/one.err" "etcd 127.0.0.1:$etcd_port: Connection refused; check that etcd runs there, or choose another with --ledger=etcd:HOST:PORT"

say "without --ledger=etcd no thread of gRPC runs"
start alone --standalone --nproc-per-node=1 sleep 305
wait_until 10 count_is "sleep 305" 1 || fail "the worker does not run"
! grep -qE 'grpc|nexting|event_engine' /proc/"${pid[alone]}"/task/*/comm || fail "gRPC runs"
kill "${pid[alone]}"
join alone 10
