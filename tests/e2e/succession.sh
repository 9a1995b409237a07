#!/usr/bin/env bash
# The leader's node is lost, twice in a row and in two ways, and each time a new ddprun replaces it: the job continues
# from the last snapshot, and the result has the same bits as an undisturbed run. Then without replacements: the world
# shrinks. Then before there is a generation. Then a node comes that knows only the endpoint, where nobody is left.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun
[[ -x $train ]] || skip "train is not built"

# Starts a node of a job: name, rank, port, more options and the worker.
node() {
    local name=$1 rank=$2 at=$3; shift 3
    start "$name" --node-rank="$rank" --rdzv-endpoint="127.0.0.1:$at" --rdzv-id="$mark" --lease=4 --join-timeout=60 \
        --last-call=0 --ledger="directory:$work/ledger.$at" "$@"
}
# How many entries the ledger of a job has, and whether it has so many: port, how many.
entries() { find "$work/ledger.$1" -name 'entry-*.json' 2>/dev/null | wc -l; }
has_entries() { (($(entries "$1") >= $2)); }
# The step of the newest complete snapshot in a folder, from the name of its manifest; 0 if there is none: folder.
step_of() {
    local newest
    newest=$(find "$1" -name 'snapshot-*.json' -printf '%f\n' 2>/dev/null | sed -n 's/^snapshot-\([0-9]*\)-g[0-9]*\.json$/\1/p' |
        sort -n | tail -n 1 || true)
    echo "$((10#${newest:-0}))"
}
is_beyond() { (($(step_of "$1") > $2)); } # folder, step

options=(-v --nnodes=3)
swept=yes # no: a whole node was killed, so nobody has removed its temporary folder
# Sets worker, a training: folder of the snapshots, milliseconds for each step.
train_in() {
    worker=("$train" --steps 400 --snapshot-every 10 --snapshot-dir "$1" --step-time-ms "$2" --timeout 60)
}
# Waits until these nodes have succeeded and nothing is left: names…
expect_end() {
    local name
    for name in "$@"; do join "$name" 90; expect_code 0; done
    [[ $swept == yes ]] || rm -rf "$TMPDIR"/ddprun_*
    swept=yes
    expect_nothing_left 5
}

say "an undisturbed run"
at=$(free_port)
train_in "$work/calm" 0
node one 0 "$at" "${options[@]}" "${worker[@]}"
node two 1 "$at" "${options[@]}" "${worker[@]}"
node three 2 "$at" "${options[@]}" "${worker[@]}"
expect_end one two three
calm=$(checksum_of "$work"/{one,two,three}.{out,err})
[[ -n $calm ]] || fail "no checksum"

say "the leader's ddprun is killed, then its successor's with keeper and workers; each is replaced"
at=$(free_port)
train_in "$work/lost" 20
node one 0 "$at" "${options[@]}" "${worker[@]}"
node two 1 "$at" "${options[@]}" "${worker[@]}"
node three 2 "$at" "${options[@]}" "${worker[@]}"
wait_until 30 is_beyond "$work/lost" 20 || fail "no snapshot"
kill -KILL "${pid[one]}"
# The new node starts only now. If the successor had to wait for a CPU, a quicker new node would rightly lead itself.
wait_until 30 has "$work/two.err" 'this node leads now' || fail "nobody took over"
node one_again 0 "$at" "${options[@]}" "${worker[@]}"
wait_until 30 has_entries "$at" 2 || fail "no second generation"
step=$(step_of "$work/lost")
wait_until 30 is_beyond "$work/lost" "$step" || fail "the second generation does not train"
kill_tree "${pid[two]}"
swept=no
node two_again 1 "$at" "${options[@]}" "${worker[@]}"
wait_until 30 has_entries "$at" 3 || fail "no third generation"
expect_end one_again two_again three
[[ $(checksum_of "$work"/{one_again,two_again,three}.{out,err}) == "$calm" ]] || fail "the checksums differ"
for name in one two; do wait "${pid[$name]}" 2>/dev/null || true; done

say "without replacements the world shrinks to one node, and each new leader speaks for the job"
at=$(free_port)
train_in "$work/shrinks" 20
options=(--nnodes=1:3 --last-call=5)
node one 0 "$at" "${options[@]}" "${worker[@]}"
node two 1 "$at" "${options[@]}" "${worker[@]}"
node three 2 "$at" "${options[@]}" "${worker[@]}"
wait_until 30 is_beyond "$work/shrinks" 20 || fail "no snapshot"
kill_tree "${pid[one]}"
swept=no
wait_until 30 has_entries "$at" 2 || fail "no generation of two"
kill -KILL "${pid[two]}"
wait_until 30 has_entries "$at" 3 || fail "no generation of one"
expect_end three
expect_in "$work/two.err" 'generation 1: .*, 2 workers'
expect_in "$work/three.err" 'generation 2: .*, 1 worker'
expect_in "$work/three.err" 'the job has ended after .* exit code 0'

say "the leader is lost while nodes gather: another node leads, and the first generation runs"
at=$(free_port)
options=(-v --nnodes=2:4 --last-call=4)
node one 0 "$at" "${options[@]}" true
node two 1 "$at" "${options[@]}" true
node three 2 "$at" "${options[@]}" true
# Only then each node knows of the others. A node that loses its leader earlier cannot find them.
wait_until 20 has "$work/one.err" 'has joined; nodes so far: 3' || fail "not all have joined"
for name in two three; do
    wait_until 10 has "$work/$name.err" 'it can take over' || fail "$name cannot take over"
done
kill_tree "${pid[one]}"
swept=no
# The ledger does not tell: the next leader may have written its entry by now.
expect_not_in "$work/one.err" 'generation 0:'
expect_end two three
has_entries "$at" 2 || fail "not one generation and an end in the ledger"

say "a node that comes when the endpoint's host is lost finds the job by its ledger"
at=$(free_port)
train_in "$work/late" 30
options=(-v --nnodes=1:2 --last-call=5) # both must be members: a spare alone cannot know that the members have stopped
node one 0 "$at" "${options[@]}" "${worker[@]}"
node two 1 "$at" "${options[@]}" "${worker[@]}"
wait_until 30 is_beyond "$work/late" 20 || fail "no snapshot"
kill_tree "${pid[one]}"
swept=no
wait_until 30 has_entries "$at" 2 || fail "no generation of one"
start late --rdzv-conf=is_host=false --rdzv-endpoint="127.0.0.1:$at" --rdzv-id="$mark" --lease=4 --join-timeout=60 --last-call=0 \
    --ledger="directory:$work/ledger.$at" "${options[@]}" "${worker[@]}"
wait_until 30 has "$work/late.err" 'also calling other nodes of the job' || fail "it does not look there"
expect_end two late
has_entries "$at" 4 || fail "no generation with the latecomer"
