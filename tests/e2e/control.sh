#!/usr/bin/env bash
# ddpctl asks a job of three nodes on loopback: whom it waits for, a restart, a node that is taken out, the loss of the
# leader while events are followed, a stop. Then a training that writes a snapshot on request, other limits, and a stop
# after a snapshot. Then who gets nothing: another secret, no secret, another user of the host.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun ddpctl train
need_root # each node gets a host name of its own
unshare --uts true 2>/dev/null || skip "host names cannot be set here"

ddpctl=$bin/ddpctl
# ddprun under the host name that HOST_NAME says.
cat >"$work/in_host" <<'EOF'
#!/bin/sh
exec unshare --uts -- sh -c 'hostname "$0"; exec "$@"' "$HOST_NAME" "$REAL_DDPRUN" "$@"
EOF
chmod +x "$work/in_host"
export REAL_DDPRUN=$ddprun
ddprun=$work/in_host
# Writes a secret that only this user may read: file.
secret() { (umask 077; head -c 32 /dev/urandom | base64 >"$1"); }
secret "$work/ours"
secret "$work/theirs"
export LOGNAME=alice

# Starts a node of a job: name, rank, port, more options and the worker.
node() {
    local name=$1 rank=$2 at=$3; shift 3
    HOST_NAME=n$((rank + 1)) start "$name" --node-rank="$rank" --rdzv-endpoint="127.0.0.1:$at" --rdzv-id="$id" \
        --lease=2 --join-timeout=60 --last-call=0 --ledger="directory:$ledger" "$@"
}
# Runs ddpctl: arguments… Sets code; output in $work/ctl.out and ctl.err.
ctl() {
    code=0
    timeout 60 "$ddpctl" "$1" --ledger="$ledger" --secret-file="${secret_file:-$work/ours}" "${@:2}" \
        >"$work/ctl.out" 2>"$work/ctl.err" </dev/null || code=$?
}
says() { ctl "$1" "${@:3}"; ((code == 0)) && has "$work/ctl.out" "$2"; } # command, pattern, options…
runs_generation() { says status "^generation  $1 runs"; }

say "a job says for whom it waits, before its first generation"
ledger=$work/ledger id=$mark.1
at=$(free_port)
worker=(sleep 310)
options=(--nnodes=2:3 --secret-file="$work/ours")
node one 0 "$at" "${options[@]}" "${worker[@]}"
wait_until 30 says status 'waiting for nodes: 1 of 2 are here' || fail "the status does not say what is missing"
ctl why
expect_in "$work/ctl.out" 'waiting for nodes: 1 of 2'
node two 1 "$at" "${options[@]}" "${worker[@]}"
wait_until 30 runs_generation 0 || fail "no generation"
expect_in "$work/ctl.out" 'restarts    0 of 3 used'
ctl status --json
expect_code 0
expect_in "$work/ctl.out" '"state": "running"'

say "ddpctl top: tables that follow each other, and one page on a terminal"
"$ddpctl" top --every=0.2 --ledger="$ledger" --secret-file="$work/ours" >"$work/top.out" 2>"$work/top.err" &
top=$!
three_tables() { (($(grep -c '^job  ' "$work/top.out") >= 3)); }
wait_until 20 three_tables || { kill "$top"; fail "no three tables"; }
kill "$top"
wait "$top" 2>/dev/null || true
expect_in "$work/top.out" '^generation  0 runs since '
expect_not_in "$work/top.out" $'\x1b'
TERM=xterm script -qec "stty rows 30; exec $ddpctl top --every=0.2 --ledger=$ledger --secret-file=$work/ours" /dev/null \
    >"$work/page.out" 2>&1 </dev/null &
top=$!
wait_until 20 has "$work/page.out" $'^\x1b\\[H\x1b\\[Jjob  ' || { kill "$top"; fail "no page"; }
kill "$top"
wait "$top" 2>/dev/null || true

say "events are followed from here on; a third node is taken in"
"$ddpctl" events -f --ledger="$ledger" --secret-file="$work/ours" >"$work/events.out" 2>"$work/events.err" &
events=$!
clean_up() { kill "$events" 2>/dev/null; }
wait_until 30 has "$work/events.out" 'generation 0 runs' || fail "no event"
node three 2 "$at" "${options[@]}" --join-interval=1 "${worker[@]}"

say "a reader that has gone ends who follows, though nothing happens; a closed standard output is said"
for command in 'events -f' 'top --every=1000'; do
    # shellcheck disable=SC2016,SC2086
    timeout 20 bash -c '"$@" | head -n 1 >/dev/null' - "$ddpctl" $command --ledger="$ledger" --secret-file="$work/ours" ||
        fail "$command does not end with its reader"
done
code=0
"$ddpctl" status --ledger="$ledger" --secret-file="$work/ours" >&- 2>"$work/ctl.err" || code=$?
expect_code 69
expect_in "$work/ctl.err" 'standard output is closed'

say "a restart by an operator uses up no restart, and is named"
newest() { ctl status --json && sed -n 's/^  "generation": \([0-9]*\),/\1/p' "$work/ctl.out"; }
before=$(newest)
ctl restart
expect_code 0
wait_until 30 runs_generation "[$((before + 1))-9]" || fail "no restart"
wait_until 10 has "$work/events.out" 'restarted by alice@.* with ddpctl' || fail "the event does not say by whom"
expect_in "$work/one.err" 'restarted by alice@.* with ddpctl'
ctl status
expect_in "$work/ctl.out" 'restarts    0 of 3 used'

say "a node is taken out, and stays out; one that does not exist is not"
three_run() { ctl status && (($(grep -cE '^n[123] +running' "$work/ctl.out") == 3)); }
wait_until 30 three_run || fail "the third node is not taken in"
ctl drain n9
expect_code 1
expect_in "$work/ctl.err" 'no node of this job is called n9'
ctl drain n2
expect_code 0
without_n2() {
    ctl status && has "$work/ctl.out" '^n2 +drained' &&
        (($(grep -cE '^n[13] +running' "$work/ctl.out") == 2))
}
wait_until 30 without_n2 || fail "n2 is not taken out"
ctl drain n2
expect_code 0
expect_in "$work/ctl.out" 'already'
ctl drain n3
expect_code 1
expect_in "$work/ctl.err" 'the job needs 2'

say "the leader is killed while events are followed: they go on with the next one"
kill -KILL "${pid[one]}"
wait_until 40 has "$work/events.out" 'n[23] leads' || fail "no event of the next leader"
# n2 was taken out, so n3 alone is too few: the job waits, and says so. A stop ends it all the same.
wait_until 40 says status '^n2 +drained' || fail "the next leader does not know who was taken out"
expect_in "$work/ctl.out" 'waiting for'
ctl stop
expect_code 0
expect_in "$work/ctl.out" 'its workers have 30.0 s to write a snapshot'
for name in two three; do
    join "$name" 60
    expect_code 143
    expect_in "$work/$name.err" 'stopped: ddpctl stop by alice@.*'
done
join one 10
wait_until 30 has "$work/events.out" 'the job has ended with code 143: stopped: ddpctl stop by alice' || fail "no last event"
wait "$events" || fail "events ended with $?"
ctl stop
expect_code 0
expect_in "$work/ctl.out" 'the job has ended with code 143'
ctl status
expect_code 1
expect_in "$work/ctl.err" 'the job has ended with code 143'
expect_nothing_left 5

say "a snapshot on request, while training goes on"
id=$mark.5
at=$(free_port)
training=("$train" --steps 1000000 --snapshot-every 1000000 --snapshot-dir "$work/snapshots" --step-time-ms 20
    --timeout 60)
names=(one two three)
for i in 0 1 2; do
    node "${names[i]}" $i "$at" --nnodes=3 --nproc-per-node=1 --secret-file="$work/ours" "${training[@]}"
done
# A number of the status, 0 if there is none: step or snapshot.
steps() {
    local number
    ctl status --json
    number=$(sed -n 's/^  "'"$1"'": \([0-9]*\),/\1/p' "$work/ctl.out")
    echo "${number:-0}"
}
trains() { (($(steps step) > 0)); }
wait_until 60 trains || fail "no training"
has_snapshot() { (($(steps snapshot) > ${1:-0})); }
! has_snapshot || fail "a snapshot that nobody has asked for"
# What a program may leave under the name of the file: nobody waits for it, and it is replaced.
mapfile -t folders < <(find "$TMPDIR" -type d -path '*/attempt_0/0')
((${#folders[@]} == 3)) || fail "${#folders[@]} folders of workers"
mkfifo "${folders[@]/%//snapshot.json}"
ctl snapshot
expect_code 0
expect_in "$work/ctl.out" 'the workers are asked for a snapshot'
wait_until 30 has_snapshot || fail "no snapshot"
first=$(steps snapshot)
goes_on() { (($(steps step) > first + 5)); }
wait_until 30 goes_on || fail "training does not go on"
runs_generation 0 || fail "the generation has ended"
expect_in "$work/one.err" 'alice@.* has asked for a snapshot with ddpctl'
[[ -z $(find "$work" -name snapshot.json) ]] || fail "the file of the request is left"
ctl snapshot
expect_code 0
wait_until 30 has_snapshot "$first" || fail "no second snapshot"

say "limits are judged, shown, and outlive the leader that was told"
ctl limits --min-nodes=4
expect_code 1
expect_in "$work/ctl.err" '--min-nodes=4 is more than --max-nodes=3'
ctl limits --min-nodes=2 --max-restarts=7
expect_code 0
expect_in "$work/ctl.out" 'from now on: 2 to 3 nodes, 0 of 7 restarts used; generation 0 goes on'
ctl limits --min-nodes=2
expect_code 0
expect_in "$work/ctl.out" 'these limits hold already'
expect_in "$work/one.err" 'alice@.* has set limits with ddpctl: 2 to 3 nodes'
says status '^limits      2 to 3 nodes' || fail "the status does not show them"
ctl limits
expect_code 2
ctl restart
expect_code 0
wait_until 40 runs_generation 1 || fail "no restart"
kill -KILL "${pid[one]}"
# --nnodes=3 would wait for the third node until the join timeout.
wait_until 40 runs_generation '[2-9]' || fail "two nodes do not go on"
expect_in "$work/ctl.out" '^limits      2 to 3 nodes'
expect_in "$work/ctl.out" 'restarts    0 of 7 used'
"$ddpctl" history --ledger="$ledger/$id" >"$work/ctl.out" || fail "no history"
expect_in "$work/ctl.out" 'generation 1: .*; limits set by alice@.*: 2 to 3 nodes, 7 restarts$'
wait_until 60 trains || fail "no training"

say "a stop after a snapshot"
before=$(steps snapshot)
ctl stop --after-snapshot
expect_code 0
expect_in "$work/ctl.out" 'asked for a snapshot, and the job stops when one is reported'
for name in two three; do
    join "$name" 60
    expect_code 143
    expect_in "$work/$name.err" 'stopped: ddpctl stop by alice@.*, after the snapshot of step'
done
after=$(cat "$work"/{two,three}.err | sed -n 's/.*after the snapshot of step \([0-9]*\).*/\1/p' | head -n 1)
((after > before)) || fail "the snapshot of step $after is not newer than $before"
join one 10
expect_nothing_left 5

say "what an operator has stopped is forgotten without force"
code=0
"$ddpctl" forget --ledger="$ledger" "$id" >"$work/ctl.out" 2>&1 || code=$?
expect_code 0
expect_in "$work/ctl.out" "^removed $id: "

say "a stop after a snapshot that is asked for before there is a generation"
id=$mark.6
at=$(free_port)
training=("$train" --steps 1000000 --snapshot-every 1000000 --snapshot-dir "$work/early" --step-time-ms 20
    --timeout 60)
for i in 0 1; do
    node "${names[i]}" $i "$at" --nnodes=3 --nproc-per-node=1 --secret-file="$work/ours" "${training[@]}"
done
wait_until 30 says status 'waiting for nodes: 2 of 3 are here' || fail "the job does not wait"
ctl stop --after-snapshot
expect_code 0
expect_in "$work/ctl.out" 'the workers of the next generation will be asked for a snapshot'
says status '^snapshot    asked for by alice@.*; then the job stops' || fail "the status does not show it"
node three 2 "$at" --nnodes=3 --nproc-per-node=1 --secret-file="$work/ours" "${training[@]}"
for name in "${names[@]}"; do
    join "$name" 60
    expect_code 143
    expect_in "$work/$name.err" 'stopped: ddpctl stop by alice@.*, after the snapshot of step'
done
expect_nothing_left 5

say "whoever does not have the secret gets nothing"
id=$mark.2 # in the same folder: the first job has ended, so this one is meant
at=$(free_port)
node one 0 "$at" --nnodes=2 --secret-file="$work/ours" "${worker[@]}"
node two 1 "$at" --nnodes=2 --secret-file="$work/ours" "${worker[@]}"
wait_until 30 runs_generation 0 || fail "no generation"
secret_file=$work/theirs
for command in status stop restart why; do
    ctl "$command"
    expect_code 77
    expect_in "$work/ctl.err" 'does not have the secret of this job'
done
unset secret_file
# Another user on this host, who may read the ledger and not the secret.
chmod -R a+rX "$work"
chmod 600 "$work/ours" "$work/theirs"
install -m 600 -o nobody "$work/theirs" "$work/nobodys"
code=0
setpriv --reuid=nobody --clear-groups "$ddpctl" stop --ledger="$ledger" --secret-file="$work/nobodys" \
    >"$work/ctl.out" 2>"$work/ctl.err" </dev/null || code=$?
((code != 0)) || fail "another user stops the job"
wait_until 10 runs_generation 0 || fail "the job does not run any more"
ctl stop
expect_code 0
for name in one two; do join "$name" 60; expect_code 143; done
expect_nothing_left 5

say "a job with its ledger in memory is found by the word that it leaves in the working directory"
mkdir "$work/here" "$work/elsewhere"
cd "$work/here"
id=$mark.8
at=$(free_port)
for i in 0 1; do
    HOST_NAME=n$((i + 1)) start "${names[i]}" --node-rank=$i --rdzv-endpoint="127.0.0.1:$at" --rdzv-id="$id" --nnodes=2 \
        --lease=2 --secret-file="$work/ours" "${worker[@]}"
done
# Runs ddpctl where it is, without an address: arguments…
here() {
    code=0
    timeout 60 "$ddpctl" "$@" --secret-file="$work/ours" >"$work/ctl.out" 2>"$work/ctl.err" </dev/null || code=$?
}
here_runs() { here status && has "$work/ctl.out" '^generation  0 runs' && has "$work/ctl.out" '^n1 +running'; }
both_run() { here_runs && has "$work/ctl.out" '^n2 +running'; }
wait_until 30 both_run || fail "it is not found"
here jobs
expect_in "$work/ctl.out" "^$id +runs or has run; ask it"
here stacks 1
expect_code 0
expect_in "$work/ctl.out" '^rank 1 of generation 0: process [0-9]+ on n2'
here history
expect_code 1
expect_in "$work/ctl.err" 'the ledger of this job is in memory'
cd "$work/elsewhere"
# The only one that runs on this host. Its private socket is there soon after its workers have started.
found_from_elsewhere() { here status && ((code == 0)) && has "$work/ctl.out" "^job +$id, led by n1"; }
wait_until 20 found_from_elsewhere || fail "it is not found: $(cat "$work/ctl.err")"
here status --rdzv-endpoint=127.0.0.1:1
expect_code 69
expect_in "$work/ctl.err" 'nobody answers at 127.0.0.1:1 \(Connection refused\): .*ddpctl history'
here stop --rdzv-endpoint="127.0.0.1:$at"
expect_code 0
for name in one two; do join "$name" 60; expect_code 143; done
[[ ! -e $work/here/.ddprun ]] || fail "left: $(ls -A "$work/here/.ddprun")"
cd "$work"
expect_nothing_left 5

say "a job of one node answers, too; nobody can join it, and with --identity=none it answers nobody"
id=$mark.3
node one 0 "$(free_port)" --nnodes=1 --secret-file="$work/ours" "${worker[@]}"
wait_until 30 runs_generation 0 || fail "no generation"
expect_in "$work/ctl.out" '^n1 +running'
ctl restart
expect_code 0
wait_until 30 runs_generation 1 || fail "no restart"
ctl drain n1
expect_code 1
expect_in "$work/ctl.err" 'the job needs 1'
secret_file=$work/theirs ctl stop
expect_code 77
joins=$(sed -n 's/.*"service_port": *\([0-9]*\).*/\1/p' "$ledger/$id/entry-000000.json" | head -n 1)
node two 1 "$joins" --nnodes=2 --secret-file="$work/ours" "${worker[@]}"
wait_until 30 has "$work/two.err" 'this job has one node' || fail "the other node is not told"
join two 60
ctl stop
expect_code 0
join one 60
expect_code 143
id=$mark.7
node one 0 "$(free_port)" --nnodes=1 --identity=none "${worker[@]}"
wait_until 30 test -e "$ledger/$id/entry-000000.json" || fail "no generation"
ctl stop
expect_code 1
expect_in "$work/ctl.err" 'this job answers no operator: it has one node'
kill -TERM "${pid[one]}"
join one 60
expect_code 143
expect_nothing_left 5

say "a job of one node with its ledger in memory answers where it was started, also without a secret"
cd "$work/here"
id=$mark.9
memory() { HOST_NAME=n1 start "$1" --nnodes=1 --rdzv-id="$id" --ledger=memory "${@:2}"; } # name, options…
memory one --secret-file="$work/ours" "${worker[@]}"
wait_until 30 here_runs || fail "it is not found"
here restart
expect_code 0
here history
expect_code 1
expect_in "$work/ctl.err" 'the ledger of this job is in memory'
here stop
expect_code 0
join one 60
expect_code 143
[[ ! -e .ddprun ]] || fail "left: $(ls -A .ddprun)"
id=$mark.10
memory one "${worker[@]}"
wait_until 30 test -e ".ddprun/$id.job" || fail "no word of it"
wait_until 30 here_runs || fail "it does not answer"
kill -TERM "${pid[one]}"
join one 60
expect_code 143
memory one --identity=none "${worker[@]}"
wait_until 30 here_runs || fail "it does not answer"
kill -TERM "${pid[one]}"
join one 60
expect_code 143
cd "$work"
expect_nothing_left 5

if [[ -n ${DDPRUN_LONG:-} ]]; then
    say "a leader freezes: events go on with the next one"
    id=$mark.4
    at=$(free_port)
    node one 0 "$at" --nnodes=1:2 --last-call=5 --secret-file="$work/ours" "${worker[@]}"
    node two 1 "$at" --nnodes=1:2 --last-call=5 --secret-file="$work/ours" "${worker[@]}"
    wait_until 30 runs_generation 0 || fail "no generation"
    "$ddpctl" events -f --ledger="$ledger" --secret-file="$work/ours" >"$work/frozen.out" 2>&1 &
    events=$!
    wait_until 30 has "$work/frozen.out" 'generation 0 runs' || fail "no event"
    kill -STOP "${pid[one]}"
    wait_until 60 has "$work/frozen.out" 'n2 leads' || fail "no event of the next leader"
    ctl stop
    expect_code 0
    join two 60
    kill -CONT "${pid[one]}" 2>/dev/null || true
    join one 60
    expect_in "$work/one.err" 'it stood still beyond the lease of its workers, so its keeper has killed it'
    expect_in "$work/two.err" 'the lease has expired on node n2; its leader, node n1, was last heard'
    expect_nothing_left 5
fi
