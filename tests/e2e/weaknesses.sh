#!/usr/bin/env bash
# What goes wrong under torchrun and must not go wrong here; launcher/DIFFERENCES.md lists it, too.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun

# Starts a node of an elastic job: name, port, more options and the worker.
elastic() {
    local name=$1 at=$2; shift 2
    start "$name" --nnodes=1:2 --rdzv-backend=c10d --rdzv-endpoint="localhost:$at" --rdzv-id="$mark" --last-call=0 --lease=2 \
        --join-timeout=10 "$@"
}
# Whether a second node is connected. The leader's own node needs no connection.
connected() { grep -qiE "$(printf ' [0-9A-F]+:%04X [0-9A-F]+:[0-9A-F]{4} 01' "$at")" /proc/net/tcp /proc/net/tcp6; }

say "a node that comes late and is never needed waits, and exits with the job's code"
# Once the job succeeds, once it fails.
for expected in 0 5; do
    at=$(free_port)
    rm -f "$work"/{up,go}
    elastic first "$at" --max-restarts=0 bash -c 'touch "$0/up"; until [[ -e $0/go ]]; do sleep 0.05; done; exit $1' "$work" $expected
    wait_until 10 test -e "$work/up" || fail "the worker does not run"
    elastic late "$at" sleep 320
    wait_until 10 connected || fail "the second node does not call"
    ! ended "${pid[late]}" || fail "it did not wait"
    touch "$work/go"
    for name in first late; do join $name 20; expect_code $expected; done
    expect_nothing_left
done

say "a node that takes part after a failure: both have the same MASTER_ADDR, MASTER_PORT and restart count"
at=$(free_port)
worker=(bash -c 'echo "$MASTER_ADDR $MASTER_PORT $TORCHELASTIC_RESTART_COUNT $WORLD_SIZE" >>"$0/seen.$1"
    [[ $WORLD_SIZE == 2 ]] && exit 0
    touch "$0/up"; until [[ -e $0/fail ]]; do sleep 0.05; done; sleep 0.1; exit 6' "$work")
rm -f "$work/up"
# The first node fails repeatedly, until the second one takes part.
elastic first "$at" --max-restarts=100 --crash-loop=0 "${worker[@]}" first
wait_until 10 test -e "$work/up" || fail "the worker does not run"
elastic late "$at" --max-restarts=100 --crash-loop=0 "${worker[@]}" late
touch "$work/fail"
for name in first late; do join $name 20; expect_code 0; done
# The last generation is the one with both nodes.
[[ $(tail -n 1 "$work/seen.first") == "$(tail -n 1 "$work/seen.late")" ]] || fail "$(tail -n 1 "$work"/seen.*)"
[[ $(tail -n 1 "$work/seen.first") == *" 2" ]] || fail "they never met"
expect_nothing_left

say "the restart budget belongs to the job, whichever node fails; all nodes have the same count"
at=$(free_port)
# Rank 0 fails in generation 0 and rank 1 in generation 1. The job has one restart, so that is its end.
for rank in 0 1; do
    start "node$rank" --nnodes=2 --node-rank=$rank --rdzv-endpoint="127.0.0.1:$at" --rdzv-id="$mark" --lease=2 --max-restarts=1 \
        --crash-loop=0 bash -c 'echo "count $TORCHELASTIC_RESTART_COUNT" >>"$0/counts.$RANK"
            [[ $TORCHELASTIC_RESTART_COUNT == "$RANK" ]] || exec sleep 321
            until grep -q "count $RANK" "$0/counts.0" && grep -q "count $RANK" "$0/counts.1"; do sleep 0.05; done
            exit 9' "$work"
done
for rank in 0 1; do join "node$rank" 30; expect_code 9; done
[[ $(<"$work/counts.0") == $'count 0\ncount 1' ]] || fail "counts of rank 0: $(<"$work/counts.0")"
diff "$work/counts.0" "$work/counts.1" >&2 || fail "the counts differ"
expect_nothing_left

say "--shutdown-timeout also applies when another worker fails"
# Rank 1 ignores SIGTERM. The default timeout of 30 s would be longer than the 20 s of this run.
run 20 --standalone --nproc-per-node=2 --max-restarts=0 --shutdown-timeout=1 bash -c '
    if ((RANK == 1)); then trap "" TERM; touch "$0/stubborn"; while :; do sleep 322; done; fi
    until [[ -e $0/stubborn ]]; do sleep 0.05; done; exit 3' "$work"
expect_code 3
expect_nothing_left

say "an error file that is not JSON hides nothing"
run 20 --standalone --nproc-per-node=2 --max-restarts=0 bash -c '((RANK == 1)) || exec sleep 323; echo "{broken" >"$TORCHELASTIC_ERROR_FILE"; exit 5'
expect_code 5
expect_in "$work/run.err" 'rank 1 .* exited with 5'
expect_in "$work/run.err" 'not JSON'

say "a signal is not lost while nobody reads the output"
# A pipe that is open and that nobody reads; the workers fill it.
mkfifo "$work/full"
exec 7<>"$work/full"
DDPRUN_TEST_MARK=$mark "$ddprun" --standalone --nproc-per-node=2 bash -c '
    trap "exit 0" TERM; head -c 300000 /dev/zero | tr "\0" "x" >&2; echo >&2; touch "$0/full.$RANK"; while :; do sleep 324 & wait; done' "$work" \
    >"$work/job.out" 2>"$work/full" </dev/null &
pid[job]=$!
both_full() { [[ -e $work/full.0 && -e $work/full.1 ]]; }
wait_until 10 both_full || fail "the workers do not get on"
kill -TERM "${pid[job]}"
join job 20
expect_code 143
exec 7>&-
expect_nothing_left

say "two jobs on one machine do not disturb each other"
start one --nproc-per-node=2 bash -c 'echo "$MASTER_PORT"; sleep 0.5'
start two --nproc-per-node=2 bash -c 'echo "$MASTER_PORT"; sleep 0.5'
for name in one two; do join $name 20; expect_code 0; done
[[ $(sed 's/.*://' "$work/one.out" | sort -u) != $(sed 's/.*://' "$work/two.out" | sort -u) ]] || fail "one port for both"

say "a name server that does not answer, and a host that does not know its own name"
# A network of its own, with a name server that takes questions and never answers.
if ((EUID == 0)) && unshare --mount --net --uts true 2>/dev/null; then
    cat >"$work/dark.sh" <<'DARK'
folder=$1; shift
ip link set lo up && hostname nobody-knows.example || exit 70
echo "nameserver 127.0.0.53" >"$folder/resolv.conf"
mount --bind "$folder/resolv.conf" /etc/resolv.conf || exit 70
timeout 20 python3 -c '
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("127.0.0.53", 53))
open(sys.argv[1] + "/dns", "w").close()
while True: s.recv(512)' "$folder" &
for _ in {1..250}; do [[ -e $folder/dns ]] && break; sleep 0.02; done
timeout --kill-after=1 4 "$@"; code=$?
kill %1
exit $code
DARK
    code=0
    DDPRUN_TEST_MARK=$mark unshare --mount --net --uts bash "$work/dark.sh" "$work" "$ddprun" --standalone --nproc-per-node=2 \
        python3 -c 'import os, socket; socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])), 3)' \
        >"$work/run.out" 2>"$work/run.err" || code=$?
    expect_code 0
else
    echo "  (left out: needs root and namespaces)"
fi
expect_nothing_left
