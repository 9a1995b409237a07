#!/usr/bin/env bash
# Which job a ledger folder belongs to, with real jobs: a folder that is shared or not, two jobs of one run id, a job
# that has ended, an entry that is damaged.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun

# Starts a node of a job of two: name, rank, port, ledger, worker.
node() {
    local name=$1 rank=$2 at=$3 ledger=$4; shift 4
    start "$name" --nnodes=2 --node-rank="$rank" --rdzv-endpoint="127.0.0.1:$at" --rdzv-id=101 --lease=2 \
        --nproc-per-node=1 --ledger="$ledger" "$@"
}
# Waits for a node and checks its exit code: name, code.
ends() { join "$1" 30; expect_code "$2"; }
# A worker that runs until the test lets it end. Its first argument is part of the command, and names its files.
wait_for_go=(bash -c 'echo >"$0/up.$1.$RANK"; until [[ -e $0/go ]]; do sleep 0.05; done' "$work")
# How many entries of a kind are in a ledger: folder, kind.
kinds() { cat "$1"/entry-*.json | grep -c "\"kind\": \"$2\"" || true; }
# The name of the entry that comes next.
next_entry() { printf 'entry-%06d.json' "$(find "$1" -name 'entry-*' | wc -l)"; }
up() { [[ -e $work/up.$1.0 && -e $work/up.$1.1 ]]; }

say "both nodes see the folder: no warning"
at=$(free_port)
node one 0 "$at" "directory:$work/shared" true
node two 1 "$at" "directory:$work/shared" true
ends one 0; ends two 0
expect_not_in "$work/one.err" 'cannot find the ledger'

say "the other node sees another folder of that name: one warning, and the loss of the leader ends the job"
if ((EUID == 0)) && unshare --mount true 2>/dev/null; then
    at=$(free_port)
    mkdir "$work/local"
    # The secret cannot come from a folder that is not shared.
    (umask 077; head -c 32 /dev/urandom | base64 >"$work/key")
    node one 0 "$at" "directory:$work/local" --secret-file="$work/key" sleep 309
    forget two
    # The second node has an empty file system in place of the folder.
    DDPRUN_TEST_MARK=$mark unshare --mount bash -c 'mount -t tmpfs none "$0" && exec "$@"' "$work/local" "$ddprun" \
        --nnodes=2 --node-rank=1 --rdzv-endpoint="127.0.0.1:$at" --rdzv-id=101 --lease=2 --nproc-per-node=1 \
        --ledger="directory:$work/local" --secret-file="$work/key" sleep 309 >"$work/two.out" 2>"$work/two.err" </dev/null &
    pid[two]=$!
    wait_until 20 count_is "sleep 309" 2 || fail "the workers do not run"
    kill -KILL "${pid[one]}" # proves nothing to the other node, which looks for a leader for two leases
    ends two 69
    wait "${pid[one]}" 2>/dev/null || true
    expect_in "$work/two.err" 'the rendezvous has been lost for'
    (($(grep -c 'cannot find the ledger of node' "$work/one.err") == 1)) || fail "not said once"
    expect_in "$work/one.err" '\(directory:.*/local/101\), .*will end the job; give all nodes --ledger=directory:PATH on a file system that they share'
fi

say "two jobs of one run id at once, with different commands: each has its own ledger, and both succeed"
rm -f "$work"/up.* "$work/go"
at=$(free_port) other=$(free_port)
node one 0 "$at" "directory:$work/jobs" "${wait_for_go[@]}" first
node two 1 "$at" "directory:$work/jobs" "${wait_for_go[@]}" first
wait_until 20 up first || fail "the first job's workers do not run"
node three 0 "$other" "directory:$work/jobs" "${wait_for_go[@]}" second
node four 1 "$other" "directory:$work/jobs" "${wait_for_go[@]}" second
wait_until 20 up second || fail "the second job's workers do not run"
expect_in "$work/three.err" 'jobs/101 belongs to another command with this run id; this job uses .*/jobs/101-'
touch "$work/go"
for name in one two three four; do ends "$name" 0; done
for folder in "$work"/jobs/101*; do (($(kinds "$folder" end) == 1)) || fail "${folder##*/} has no end"; done
(($(find "$work/jobs" -mindepth 1 -maxdepth 1 | wc -l) == 2)) || fail "not two ledgers"

say "the same run id later: the finished ledger is set aside, and a line says so"
at=$(free_port)
node one 0 "$at" "directory:$work/jobs" "${wait_for_go[@]}" first
node two 1 "$at" "directory:$work/jobs" "${wait_for_go[@]}" first
ends one 0; ends two 0
expect_in "$work/one.err" 'jobs/101 belongs to a job that has ended; it was moved to .*/jobs/101-finished-[0-9a-f]{16}'

say "the ddprun of a job of one node was killed and is begun again by hand: it says at once what it waits for, how long"
alone() { start one --nnodes=1 --rdzv-id=102 --lease=2 --join-timeout=1 --ledger="directory:$work/alone" sleep 307; }
alone
wait_until 20 count_is "sleep 307" 1 || fail "the worker does not run"
wait_until 20 test -e "$work/alone/102/entry-000000.json" || fail "no entry"
kill -KILL "${pid[one]}"
wait "${pid[one]}" 2>/dev/null || true
expect_nothing_left 10
alone
ends one 69
expect_in "$work/one.err" 'an earlier ddprun has begun generation 0 on .*, and nothing proves that its workers have ended'
expect_in "$work/one.err" '; this job waits for 3.0 s \(--join-timeout\) and then ends'
rm -r "$work/alone" # as ddpctl forget --force does
alone
wait_until 20 count_is "sleep 307" 1 || fail "the worker does not run"
kill -TERM "${pid[one]}"
ends one 143

say "a requeued job continues in its ledger with the next generation; a node of the old allocation is refused"
at=$(free_port)
# Starts a node with the variables of a Slurm step: name, node id, SLURM_RESTART_COUNT.
step() {
    SLURM_JOB_ID=88 SLURM_STEP_ID=0 SLURM_CLUSTER_NAME=lab SLURM_STEP_NODELIST='127.0.0.[1-2]' SLURM_STEP_NUM_NODES=2 SLURM_NODEID=$2 \
        SLURM_STEP_TASKS_PER_NODE='1(x2)' SLURM_RESTART_COUNT=$3 start "$1" --ports="$at-$at" --lease=2 \
        --nproc-per-node=1 --ledger="directory:$work/requeued" \
        bash -c 'echo >"$0/requeue.$TORCHELASTIC_RESTART_COUNT.$RANK"; ((TORCHELASTIC_RESTART_COUNT > 0)) || exec sleep 308' "$work"
}
requeue_up() { [[ -e $work/requeue.$1.0 && -e $work/requeue.$1.1 ]]; }
# Both hosts of the step are this machine, and the leader must get the port of the endpoint, so it starts first.
# Names of the nodes, restart counts.
both_steps() {
    step "$1" 0 "$3"
    wait_until 20 listens "$at" || fail "the leader does not listen"
    step "$2" 1 "$4"
}
both_steps one two 0 0
wait_until 20 requeue_up 0 || fail "the workers do not run"
kill -KILL "${pid[one]}" "${pid[two]}" # the allocation ends
wait "${pid[one]}" "${pid[two]}" 2>/dev/null || true
expect_nothing_left # the keepers have let go of the ports
both_steps one old 1 0
ends old 69
expect_in "$work/old.err" 'belongs to restart 0 of the job; this is restart 1'
step two 1 1
ends one 0; ends two 0
requeue_up 1 || fail "there was no generation 1"
expect_in "$work/one.err" 'requeued/lab.88.0 continues after entry [01] \(generation 0, written by 127.0.0.1\)'
# The first allocation was killed and has recorded no end.
expect_in "$work/one.err" 'has recorded no end, so its workers may still run; .* begins in 6.0 s \(three leases, --requeue-wait\)'
expect_in "$work/one.err" 'generation 1: 2 nodes, 2 workers'
(($(kinds "$work/requeued/lab.88.0" generation) == 2)) || fail "not two generations"
(($(kinds "$work/requeued/lab.88.0" end) == 1)) || fail "no end"

say "Slurm requeues a job whose nodes still train: the old allocation ends with 75, the two never train at once"
# Each worker holds a lock that all workers of its allocation share. A worker of the other one finds it taken.
alive() {
    ALLOCATION=$3 SLURM_JOB_ID=89 SLURM_STEP_ID=0 SLURM_CLUSTER_NAME=lab SLURM_STEP_NODELIST="$4" SLURM_STEP_NUM_NODES=2 \
        SLURM_NODEID=$2 SLURM_STEP_TASKS_PER_NODE='1(x2)' SLURM_RESTART_COUNT=$3 start "$1" --ports="$at-$at" --lease=2 \
        --nproc-per-node=1 --ledger="directory:$work/requeued" bash -c '
            exec 8<>"$0/trains.$ALLOCATION"
            flock -s 8
            # One rank asks: two that ask at once would find each other.
            ((RANK > 0)) || flock -xn 7 7<>"$0/trains.$((1 - ALLOCATION))" || { echo "BOTH TRAIN"; exit 1; }
            echo >"$0/alive.$ALLOCATION.$RANK"; ((ALLOCATION > 0)) || exec sleep 311' "$work"
}
at=$(free_port)
alive one 0 0 '127.0.0.[1-2]'
wait_until 20 listens "$at" || fail "the leader does not listen"
alive two 1 0 '127.0.0.[1-2]'
wait_until 20 test -e "$work/alive.0.0" -a -e "$work/alive.0.1" || fail "the workers do not run"
at=$(free_port)
alive three 0 1 '127.0.0.[3-4]'
wait_until 20 listens "$at" || fail "the new leader does not listen"
alive four 1 1 '127.0.0.[3-4]'
ends one 75; ends two 75; ends three 0; ends four 0
expect_in "$work/one.err" 'restart 1 of this job has begun in another allocation, so this one \(restart 0\) ends'
expect_in "$work/three.err" 'begins in 6.0 s'
for name in one two three four; do expect_not_in "$work/$name.out" 'BOTH TRAIN'; done
[[ -e $work/alive.1.0 && -e $work/alive.1.1 ]] || fail "the new allocation has not trained"

say "an entry that is damaged before the start: refused by name, with what to do"
mkdir -p "$work/cut/101"
echo '{"format": "ddprun' >"$work/cut/101/entry-000000.json"
node one 0 "$(free_port)" "directory:$work/cut" true
ends one 69
expect_in "$work/one.err" 'cut/101/entry-000000.json is truncated or is not JSON; move its folder away'

say "an entry that is damaged during the job: named; the job continues when it is removed"
rm -f "$work"/up.* "$work/go"
at=$(free_port)
node one 0 "$at" "directory:$work/hand" "${wait_for_go[@]}" hand
node two 1 "$at" "directory:$work/hand" "${wait_for_go[@]}" hand
wait_until 20 up hand || fail "the workers do not run"
entry=$(next_entry "$work/hand/101")
echo nonsense >"$work/hand/101/$entry"
touch "$work/go"
wait_until 20 has "$work/one.err" "hand/101/$entry is truncated or is not JSON" || fail "nothing is said"
# The leader tries again and again to record the end under that number.
rm "$work/hand/101/$entry"
ends one 0; ends two 0
expect_nothing_left

say "a folder that is deleted during the job: the next restart ends the job on both nodes and names the folder"
rm -f "$work"/up.* "$work/go"
at=$(free_port)
deletes=("directory:$work/deleted" --join-timeout=6 --max-restarts=3 --shutdown-timeout=1 bash -c
    'echo >"$0/up.deleted.$RANK"; until [[ -e $0/go ]]; do sleep 0.05; done; exit 3' "$work")
node one 0 "$at" "${deletes[@]}"
node two 1 "$at" "${deletes[@]}"
wait_until 20 up deleted || fail "the workers do not run"
rm -rf "$work/deleted"
touch "$work/go"
ends one 69; ends two 69
said='unavailable for [0-9.]+ s \(--join-timeout\): ledger folder .*deleted/101 no longer belongs to this job: it was deleted or replaced'
grep -qE "$said" "$work/one.err" "$work/two.err" || fail "the reason is not given"
expect_nothing_left
