#!/usr/bin/env bash
# What workers read on DDPRUN_EVENTS_FD: each rank hears of each death before its signal. Ranks that do not read, or
# have closed it, do no harm, and neither do processes that hold it open. The worker store has the same lines. Then the
# same on two hosts made of namespaces, where the machine has them.
if [[ -z ${FAULTS_INSIDE:-} ]] && unshare --net --mount --time true 2>/dev/null; then
    FAULTS_INSIDE=1 exec unshare --net --mount bash "$0" "$@"
fi
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
source "$root/tests/faults/hosts.sh"
need_built ddprun
[[ -z ${FAULTS_INSIDE:-} ]] || ip link set lo up
python=$(python3 -c 'import sys; print(sys.executable)') # no script around it, which would start slowly
worker=("$python" "$e2e/events_worker.py")
clean_up() {
    local name
    for name in "${!init[@]}"; do kill -KILL "${init[$name]}"; done
}

# Whether each of so many has heard, in a folder; prints how soon: folder, how many.
expect_latencies() {
    python3 - "$1/latencies" "$2" <<'END' || fail "not each rank has read of each death once"
import statistics, sys
lines = [line.split() for line in open(sys.argv[1])]
times = sorted(float(line[2]) for line in lines)
print(f"  {len(times)} times; after {statistics.median(times):.2f} ms (median), {times[0]:.2f} to {times[-1]:.2f} ms")
sys.exit(len({(line[0], line[1]) for line in lines}) != len(lines) or len(lines) != int(sys.argv[2]))
END
}

say "one of four ranks is killed, twenty times: each of the others reads which"
mkdir "$work/four"
run 120 --standalone --nproc-per-node=4 --max-restarts=20 --crash-loop=0 --warm=off "${worker[@]}" "$work/four" 20
expect_code 0
expect_latencies "$work/four" 60
expect_nothing_left

say "a rank that never reads, and one that has closed it"
mkdir "$work/odd"
run 120 --standalone --nproc-per-node=4 --max-restarts=8 --crash-loop=0 --warm=off \
    "${worker[@]}" "$work/odd" 8 deaf=1 closed=2
expect_code 0
python3 - "$work/odd/latencies" <<'END' || fail "the others have not heard"
import sys
sys.exit(len(open(sys.argv[1]).readlines()) != 8)
END
expect_nothing_left

say "a shell reads it byte by byte, and finds the stop before its signal"
# shellcheck disable=SC2016
run 30 --standalone --nproc-per-node=2 --max-restarts=1 bash -c '
    ((TORCHELASTIC_RESTART_COUNT == 0)) || exit 0
    ((RANK == 0)) || { until [[ -e $0/traps ]]; do sleep 0.02; done; exit 7; }
    trap "echo signalled" TERM
    : >"$0/traps"
    read -r line <&"$DDPRUN_EVENTS_FD"; echo "$line"
    read -r line <&"$DDPRUN_EVENTS_FD"; echo "$line"' "$work"
expect_code 0
expect_in "$work/run.out" '"event":"worker_lost","rank":1,"exit_code":7'
expect_in "$work/run.out" '"event":"stop","reason":"restart","signal":"SIGTERM","seconds_left":5'

say "a planned stop has its reason, and the time until SIGKILL"
# shellcheck disable=SC2016
start stopped --standalone --nproc-per-node=2 --shutdown-timeout=7 bash -c '
    trap "" TERM; : >"$0/up.$RANK"
    read -r line <&"$DDPRUN_EVENTS_FD"; echo "$RANK $line"' "$work"
both_up() { [[ -e $work/up.0 && -e $work/up.1 ]]; }
wait_until 10 both_up || fail "the workers do not run"
kill -TERM "${pid[stopped]}"
join stopped 20
expect_code 143
for rank in 0 1; do
    expect_in "$work/stopped.out" "$rank ."'"event":"stop","reason":"signal",.*"seconds_left":7'
done

say "who is started by a worker, and outlives it, may hold it open"
# shellcheck disable=SC2016
run 30 --standalone --nproc-per-node=1 --max-restarts=0 --wait-for-helpers=0 bash -c '
    sleep 300 & readlink /proc/$!/fd/"$DDPRUN_EVENTS_FD"'
expect_code 0
expect_in "$work/run.out" 'socket:'
expect_nothing_left

say "a ddprun inside of a ddprun has its own"
# shellcheck disable=SC2016
run 30 --standalone --nproc-per-node=1 bash -c '
    readlink /proc/self/fd/"$DDPRUN_EVENTS_FD"
    exec "$0" --standalone --nproc-per-node=1 bash -c "readlink /proc/self/fd/\$DDPRUN_EVENTS_FD"' "$ddprun"
expect_code 0
(($(grep -o 'socket:.*' "$work/run.out" | sort -u | wc -l) == 2)) || fail "it is not another socket"

say "the worker store has the same lines"
# The protocol of TCPStore, 2.2 and later: VALIDATE, WAIT, GET.
run 30 --standalone --nproc-per-node=2 --max-restarts=1 "$python" -c '
import json, os, signal, socket, struct, sys, time
if os.environ["TORCHELASTIC_RESTART_COUNT"] != "0": sys.exit(0)
if os.environ["RANK"] == "1":
    while not os.path.exists(sys.argv[1]): time.sleep(0.02)
    sys.exit(9)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(sys.argv[1], "w").close()
store = socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))
text = lambda word: struct.pack("=Q", len(word)) + word
store.sendall(b"\0" + struct.pack("=I", 0x3C85F7CE))
def get(key):
    store.sendall(b"\6" + struct.pack("=Q", 1) + text(key))
    assert store.recv(1, socket.MSG_WAITALL) == b"\0"
    store.sendall(b"\3" + text(key))
    length, = struct.unpack("=Q", store.recv(8, socket.MSG_WAITALL))
    return json.loads(store.recv(length, socket.MSG_WAITALL))
for number in range(2): print(get(b"/ddprun/event/%d" % number), flush=True)' "$work/asks"
expect_code 0
expect_in "$work/run.out" "'event': 'worker_lost', 'rank': 1, 'exit_code': 9"
expect_in "$work/run.out" "'event': 'stop', 'reason': 'restart'"

[[ -n ${FAULTS_INSIDE:-} ]] || { echo "left out: hosts made of namespaces"; exit 0; }
need_hosts
ledger=$work/ledger
mkdir "$ledger" "$work/hosts"
names=(n1 n2)
for name in "${names[@]}"; do boot_host "$name"; done
# Starts ddprun on a host: name, options and worker…
node() {
    local name=$1; shift
    enter "$name"
    forget "$name"
    DDPRUN_TEST_MARK=$mark TMPDIR=$work/tmp.$name "${entered[@]}" "$ddprun" --nnodes=2 --node-rank=$((${name#n} - 1)) \
        --ledger="directory:$ledger" --identity=none --rdzv-endpoint="$(address n1):29500" --rdzv-id="$mark.$story" \
        --warm=off "$@" >"$work/$name.out" 2>"$work/$name.err" </dev/null &
    pid[$name]=$!
}

say "on two hosts each rank reads which one died, on either of them"
for name in "${names[@]}"; do
    node "$name" --nproc-per-node=2 --max-restarts=20 --crash-loop=0 "${worker[@]}" "$work/hosts" 20
done
for name in "${names[@]}"; do join "$name" 120; expect_code 0; done
expect_latencies "$work/hosts" 60
