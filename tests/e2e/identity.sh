#!/usr/bin/env bash
# Who may join. The right secret runs; a wrong one and none are refused by name, and the job goes on. Also: what is
# refused before the start, the secret in the ledger's folder, and the loss of a node, which must still show at once.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun ddprun-rendezvous

# A munge that does not run, whatever this machine has: so each story decides how its nodes prove who they are.
mkdir "$work/bin"
for name in munge unmunge; do printf '#!/bin/sh\nexit 6\n' >"$work/bin/$name"; done
chmod +x "$work"/bin/*
export PATH=$work/bin:$PATH
# Writes a secret that only this user may read: file.
secret() { (umask 077; head -c 32 /dev/urandom | base64 >"$1"); }
secret "$work/ours"
secret "$work/theirs"

# Starts a node of a job of two: name, rank, port, more options and the worker.
node() {
    local name=$1 rank=$2 at=$3; shift 3
    start "$name" --nnodes=2 --node-rank="$rank" --rdzv-endpoint="127.0.0.1:$at" --rdzv-id="$mark" --lease=2 "$@"
}
# Runs until the test lets it end.
worker=(bash -c 'echo >"$0/up.$RANK"; until [[ -e $0/go ]]; do sleep 0.05; done' "$work")
all_up() { [[ -e $work/up.0 && -e $work/up.1 ]]; }
# Waits for both nodes, and that nothing is left: the exit code of both.
expect_job() {
    join one 30; expect_code "$1"
    join two 30; expect_code "$1"
    expect_nothing_left
}

# What a core file of a process would show of a secret: pid, file. Only processes of our own may be looked into, and not
# everywhere.
find_in_memory() { python3 "$e2e/find_in_memory.py" "$1" "$2"; }
may_look() { find_in_memory "$1" "$work/ours" >/dev/null 2>&1; }

say "a wrong secret and none are refused by name, also while the job runs; the right secret runs"
at=$(free_port)
node one 0 "$at" --secret-file="$work/ours" "${worker[@]}"
node wrong 1 "$at" --secret-file="$work/theirs" --join-timeout=10 "${worker[@]}"
# The last that this node computes is a proof, after which the secret must not stay in the memory of the computation.
wait_until 10 has "$work/wrong.err" 'does not have the secret' || fail "the refusal is not logged"
if may_look "${pid[wrong]}"; then
    found=$(find_in_memory "${pid[wrong]}" "$work/theirs")
    [[ $found == "kept out" ]] || fail "the secret in the memory of a node that is refused: $found"
fi
join wrong 20
expect_code 69
expect_in "$work/wrong.err" 'does not have the secret of this job'
node bare 1 "$at" --join-timeout=2 "${worker[@]}"
join bare 20
expect_code 69
expect_in "$work/bare.err" 'secret-file'
node two 1 "$at" --secret-file="$work/ours" "${worker[@]}"
wait_until 10 all_up || fail "the workers do not run"
expect_in "$work/one.err" 'does not have the secret'
# Core files must not show the secret, and keepers have none.
if may_look "${pid[one]}"; then
    for name in one two; do
        found=$(find_in_memory "${pid[$name]}" "$work/ours")
        [[ $found == "kept out" ]] || fail "the secret in the memory of ddprun $name: $found"
        found=$(find_in_memory "$(pgrep -P "${pid[$name]}" -x job-keeper)" "$work/ours")
        [[ $found == none ]] || fail "the secret in the memory of the keeper of $name: $found"
    done
fi
node late 1 "$at" --secret-file="$work/theirs" --join-timeout=3 "${worker[@]}"
join late 20
expect_code 69
touch "$work/go"
expect_job 0
expect_not_in "$work/one.err" 'generation 1'
rm "$work/go" "$work"/up.*

say "a crash restarts both nodes over authenticated links"
at=$(free_port)
# Rank 1 crashes in generation 0; generation 1 succeeds.
crash=(bash -c '[[ $TORCHELASTIC_RESTART_COUNT != 0 ]] && exit 0; ((RANK == 1)) && exit 9; sleep 320')
node one 0 "$at" --secret-file="$work/ours" --max-restarts=1 "${crash[@]}"
node two 1 "$at" --secret-file="$work/ours" --max-restarts=1 "${crash[@]}"
expect_job 0

say "the keeper's final message counts: the end of a killed ddprun is known long before the lease expires"
at=$(free_port)
# A lease of 20 s: within the 15 s below only the message can be the reason.
start one --nnodes=2 --node-rank=0 --rdzv-endpoint="127.0.0.1:$at" --rdzv-id="$mark" --lease=20 --join-timeout=2 \
    --secret-file="$work/ours" sleep 321
start two --nnodes=2 --node-rank=1 --rdzv-endpoint="127.0.0.1:$at" --rdzv-id="$mark" --lease=20 \
    --secret-file="$work/ours" sleep 321
wait_until 10 count_is "sleep 321" 2 || fail "the workers do not run"
kill -KILL "${pid[two]}"
join two 5
join one 15
expect_code 69
expect_in "$work/one.err" 'its ddprun has ended'
expect_nothing_left 5

say "without --secret-file the ledger's folder has a secret that only this user may read"
at=$(free_port)
node one 0 "$at" --ledger="directory:$work/ledger" "${worker[@]}"
node two 1 "$at" --ledger="directory:$work/ledger" "${worker[@]}"
wait_until 10 all_up || fail "the workers do not run"
[[ $(stat -c %a "$work/ledger/$mark/secret") == 600 ]] || fail "others can read the secret"
# A node with another ledger has no secret. The refusal names the ledger.
node other 1 "$at" --ledger=memory --join-timeout=2 "${worker[@]}"
join other 20
expect_code 69
expect_in "$work/other.err" 'ledger'
touch "$work/go"
expect_job 0
expect_not_in "$work/one.err" 'anybody'
rm "$work/go" "$work"/up.*

say "if that folder belongs to another job, the secret is in the folder beside it, and nodes with another command find it"
# The first job holds the folder until the end of the next story.
at=$(free_port) other=$(free_port)
node one 0 "$at" --ledger="directory:$work/beside" "${worker[@]}"
node two 1 "$at" --ledger="directory:$work/beside" "${worker[@]}"
wait_until 10 all_up || fail "the workers do not run"
node three 0 "$other" --ledger="directory:$work/beside" true three
node four 1 "$other" --ledger="directory:$work/beside" true four
for name in three four; do join "$name" 30; expect_code 0; done
(($(cat "$work/beside/$mark"*/secret* | sort -u | grep -c .) == 2)) || fail "the two jobs do not have a secret each"

say "the next leader asks for the same secret"
other=$(free_port)
# Generation 0 runs until its leader is lost; generation 1 succeeds.
lost=(bash -c 'echo >"$0/lost.$TORCHELASTIC_RESTART_COUNT.$RANK"; ((TORCHELASTIC_RESTART_COUNT > 0)) || exec sleep 322' "$work")
all_lost() { [[ -e $work/lost.0.0 && -e $work/lost.0.1 && -e $work/lost.0.2 ]]; }
rank=0
for name in three four five; do
    node "$name" "$((rank++))" "$other" --ledger="directory:$work/beside" --nnodes=2:3 --last-call=20 -v "${lost[@]}"
done
wait_until 20 all_lost || fail "the workers do not run"
for name in four five; do
    wait_until 20 has "$work/$name.err" 'it can take over' || fail "$name does not find its leader's ledger"
done
chmod 644 "$work/beside/$mark/secret" # so nobody can use the secret of the other job
kill -KILL "${pid[three]}"
for name in four five; do join "$name" 30; expect_code 0; done
chmod 600 "$work/beside/$mark/secret"
wait "${pid[three]}" 2>/dev/null || true
[[ -e $work/lost.1.1 ]] || fail "there was no generation of two"
touch "$work/go"
expect_job 0
rm "$work/go" "$work"/up.*

say "without any secret a warning says so, and what to do; --identity=none silences it"
at=$(free_port)
node one 0 "$at" true
node two 1 "$at" true
expect_job 0
# Only the leader warns.
(($(grep -c 'anybody who reaches' "$work/one.err") == 1)) || fail "not one warning"
expect_in "$work/one.err" 'secret-file=PATH'
expect_not_in "$work/two.err" 'anybody'
at=$(free_port)
node one 0 "$at" --identity=none true
node two 1 "$at" --identity=none true
expect_job 0
expect_not_in "$work/one.err" 'anybody'

say "--identity=require refuses such a job"
run 20 --nnodes=2 --node-rank=0 --rdzv-endpoint="127.0.0.1:$(free_port)" --identity=require true
expect_code 69
expect_in "$work/run.err" 'munged does not run on this host'

say "one line for a secret that cannot be used"
# Runs ddprun with a secret that cannot be used, and checks its one line: text in the line, options…
expect_refused() {
    local text=$1; shift
    run 20 --nnodes=2 --node-rank=0 --rdzv-endpoint="127.0.0.1:29400" "$@" true
    expect_code 2
    (($(wc -l <"$work/run.err") == 1)) || fail "not one line"
    expect_in "$work/run.err" "$text"
}
expect_refused 'No such file' --secret-file="$work/missing"
cp "$work/ours" "$work/open"
chmod 644 "$work/open"
expect_refused 'chmod 600' --secret-file="$work/open"
(umask 077; echo short >"$work/short")
expect_refused 'at least 16' --secret-file="$work/short"
expect_refused 'leave one of them out' --secret-file="$work/ours" --identity=none
expect_refused 'auto, require or none' --identity=perhaps

say "a rendezvous outside the job asks for the same proof"
at=$(free_port)
DDPRUN_TEST_MARK=$mark "$bin/ddprun-rendezvous" --listen="127.0.0.1:$at" --secret-file="$work/ours" >"$work/daemon.out" 2>"$work/daemon.err" &
pid[daemon]=$!
# Starts a node of a job at that rendezvous: name, options…
outside() {
    local name=$1; shift
    start "$name" --nnodes=2 --rdzv-conf=is_host=false --rdzv-endpoint="127.0.0.1:$at" \
        --rdzv-id="$mark" --lease=2 --join-timeout=10 "$@"
}
outside wrong --secret-file="$work/theirs" true
join wrong 20
expect_code 69
outside one --secret-file="$work/ours" true
outside two --secret-file="$work/ours" true
for name in one two; do
    join "$name" 30
    expect_code 0
done
kill "${pid[daemon]}"
join daemon 10
expect_code 0
expect_nothing_left

say "a rendezvous outside the job without a secret says what helps there"
forget daemon
DDPRUN_TEST_MARK=$mark "$bin/ddprun-rendezvous" --listen="127.0.0.1:$(free_port)" --ledger="directory:$work/outside" \
    >"$work/daemon.out" 2>"$work/daemon.err" &
pid[daemon]=$!
wait_until 10 has "$work/daemon.err" 'anybody who reaches the port' || fail "nothing is said"
expect_in "$work/daemon.err" 'munged does not run on this host.*give ddprun-rendezvous and all nodes one --secret-file=PATH'
expect_not_in "$work/daemon.err" '--ledger'
kill "${pid[daemon]}"
join daemon 10
expect_code 0
expect_nothing_left
