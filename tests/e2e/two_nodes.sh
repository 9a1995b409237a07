#!/usr/bin/env bash
# Two nodes on loopback: a start, a crash on one and a restart of both, the end with one code; the loss of a node;
# strangers at the port.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun

# Starts a node of the job: name, rank, port, more options and the worker.
node() {
    local name=$1 rank=$2 at=$3; shift 3
    start "$name" --nnodes=2 --node-rank="$rank" --rdzv-endpoint="127.0.0.1:$at" --rdzv-id="$mark" --lease=2 \
        --nproc-per-node=2 "$@"
}
# Starts both nodes: port, more options and the worker.
both() {
    node one 0 "$@"
    node two 1 "$@"
}
# Waits for both nodes, and that nothing is left: the exit code of both.
expect_both() {
    join one 30; expect_code "$1"
    join two 30; expect_code "$1"
    expect_nothing_left
}

say "four workers of two nodes share one world"
both "$(free_port)" bash -c '
    echo "$RANK/$WORLD_SIZE $LOCAL_RANK $GROUP_RANK/$GROUP_WORLD_SIZE $MASTER_PORT" >"$0/seen.$RANK"' "$work"
expect_both 0
# Two workers on each node: rank, local rank and node rank follow from that.
for rank in 0 1 2 3; do expect_in "$work/seen.$rank" "^$rank/4 $((rank % 2)) $((rank / 2))/2 "; done
(($(cut -d' ' -f4 "$work"/seen.* | sort -u | wc -l) == 1)) || fail "more than one MASTER_PORT"
# Only the leader warns.
(($(grep -l "the ledger is in memory" "$work"/{one,two}.err | wc -l) == 1)) ||
    fail "not one node warns of the ledger in memory"

say "a crash on node 1 restarts all four"
both "$(free_port)" --max-restarts=1 bash -c '
    echo "generation $TORCHELASTIC_RESTART_COUNT"
    [[ $TORCHELASTIC_RESTART_COUNT != 0 ]] && exit 0
    ((RANK == 3)) && exit 9
    sleep 306'
expect_both 0
for name in one two; do
    (($(grep -c 'generation 1$' "$work/$name.out") == 2)) || fail "not both workers of $name ran in generation 1"
done

say "a step that is too large, and a line without an end, harm nobody"
# shellcheck disable=SC2016
both "$(free_port)" --max-restarts=0 bash -c '
    echo "step=9223372036854775807 snapshot=9223372036854775807" >&"$DDPRUN_PROGRESS_FD"
    printf "%070000d\nstep=3\n" 0 >&"$DDPRUN_PROGRESS_FD"
    sleep 0.5'
expect_both 0
for name in one two; do expect_not_in "$work/$name.err" 'connection closed: from|reconnecting'; done

say "with no restart left both nodes end with the worker's code and name it"
both "$(free_port)" --max-restarts=0 bash -c '((RANK == 3)) && exit 9; sleep 307'
expect_both 9
for name in one two; do expect_in "$work/$name.err" 'rank 3'; done

say "train on two nodes: a run with a crash has the same bits as one without"
if [[ -x $train ]]; then
    both "$(free_port)" "$train" --steps 30 --snapshot-every 10 --snapshot-dir "$work/calm"
    expect_both 0
    calm=$(checksum_of "$work"/{one,two}.{out,err})
    both "$(free_port)" --max-restarts=1 "$train" --steps 30 --snapshot-every 10 --snapshot-dir "$work/crash" \
        --crash-at-step 25 --crash-rank 2
    expect_both 0
    [[ -n $calm && $(checksum_of "$work"/{one,two}.{out,err}) == "$calm" ]] || fail "the checksums differ"
fi

# Kills one node and checks that the other ends by itself, in time and with a reason: which one, the other one.
lose() {
    local begin=$SECONDS
    both "$(free_port)" --join-timeout=3 sleep 308
    wait_until 10 count_is "sleep 308" 4 || fail "the workers do not run"
    kill -KILL "${pid[$1]}"
    join "$1" 5
    join "$2" 20
    expect_code 69
    [[ -s $work/$2.err ]] || fail "no reason is given"
    expect_nothing_left 5
    ((SECONDS - begin < 25)) || fail "it took $((SECONDS - begin)) s"
}
say "node 1 is killed: node 0 waits for another one until the join timeout, and ends with a reason"
lose two one
expect_in "$work/one.err" '(node|join|lost|gone)'
say "node 0, which leads, is killed: node 1 ends with a reason"
lose one two

say "strangers at the port harm nobody, while nodes gather and while workers run"
at=$(free_port)
# Each stranger is a process of its own, because a write to a closed connection kills the writer.
reach() { (exec 3<>"/dev/tcp/127.0.0.1/$at") 2>/dev/null; }
talk() { (exec 3<>"/dev/tcp/127.0.0.1/$at"; printf "$1" >&3) 2>/dev/null || true; }
# HTTP, broken frames of the agent link, another version, HTTP/2, c10d, a start that is cut off, and random bytes.
strangers() {
    local text
    for text in 'GET / HTTP/1.0\r\n\r\n' 'DDPRUN\x01\n\xff\xff\xff\xff' 'DDPRUN\x01\n\x00\x00\x00\x05abcde' \
        'DDPRUN\x09\nfuture' 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' '\x00\x00\x00\x00' 'DDP'; do
        talk "$text"
    done
    (exec 3<>"/dev/tcp/127.0.0.1/$at"; head -c 65536 /dev/urandom >&3) 2>/dev/null || true
    reach || fail "nobody listens any more"
}
worker=(bash -c 'echo >"$0/up.$RANK"; until [[ -e $0/go ]]; do sleep 0.05; done' "$work")
node one 0 "$at" "${worker[@]}"
wait_until 10 reach || fail "nobody listens"
(exec 3<>"/dev/tcp/127.0.0.1/$at"; exec sleep 300) & # says nothing, and stays
silent=$!
clean_up() { kill "$silent" 2>/dev/null; }
strangers

say "a node of another job is refused with a reason"
start other --nnodes=2 --node-rank=1 --rdzv-endpoint="127.0.0.1:$at" --rdzv-id=another --lease=2 --join-timeout=5 \
    sleep 309
join other 20
expect_code 69
expect_in "$work/other.err" 'another'

say "the disturbed job continues"
node two 1 "$at" "${worker[@]}"
all_up() { [[ -e $work/up.0 && -e $work/up.1 && -e $work/up.2 && -e $work/up.3 ]]; }
wait_until 10 all_up || fail "the workers do not run"
strangers
touch "$work/go"
expect_both 0
for name in one two; do expect_not_in "$work/$name.err" 'generation 1'; done

say "a second job on the same hosts and port, both without --rdzv-id: each of its nodes ends with a reason"
at=$(free_port)
rm "$work"/up.* "$work/go"
unnamed() { # name, rank, worker…
    start "$1" --nnodes=2 --node-rank="$2" --rdzv-endpoint="127.0.0.1:$at" --lease=2 --nproc-per-node=2 "${@:3}"
}
unnamed one 0 "${worker[@]}"
unnamed two 1 "${worker[@]}"
wait_until 10 all_up || fail "the workers do not run"
unnamed other.one 0 sleep 310
unnamed other.two 1 sleep 310
for name in other.one other.two; do join $name 20; expect_code 69; done
expect_in "$work/other.one.err" "port $at: Address already in use; choose another port with --rdzv-endpoint"
expect_in "$work/other.two.err" 'has --node-rank=1, as has node .*; two jobs need two ports, or each its own --rdzv-id'
touch "$work/go"
expect_both 0

say "localhost is ::1, and addresses of IPv6 without brackets where no port follows"
if ((EUID == 0)) && unshare --net --mount true 2>/dev/null; then
    printf '::1 localhost\nfd77::5 six\n' >"$work/hosts"
    cat >"$work/six.sh" <<'SIX'
ip link set lo up && ip -6 addr add fd77::5/64 dev lo nodad && hostname six &&
    mount --bind "$1/hosts" /etc/hosts || exit 9
show() { echo "$WORLD_SIZE at $MASTER_ADDR"; }; export -f show
for endpoint in '[::1]:29811' localhost:29812 '[fd77::5]:29813'; do
    one=("$2" --nnodes=2 --rdzv-id=six --rdzv-backend=c10d --rdzv-endpoint="$endpoint" --join-timeout=15 --no-label)
    "${one[@]}" bash -c show &
    "${one[@]}" bash -c show || exit
    wait $! || exit
done
"$2" --nnodes=1 --node-rank=0 --master-addr=fd77::5 --master-port=29814 --no-label bash -c show
SIX
    code=0
    DDPRUN_TEST_MARK=$mark timeout --kill-after=5 90 unshare --net --uts --mount bash "$work/six.sh" "$work" "$ddprun" \
        >"$work/run.out" 2>"$work/run.err" </dev/null || code=$?
    expect_code 0
    (($(grep -c '^2 at ' "$work/run.out") == 6 && $(grep -c '^1 at ' "$work/run.out") == 1)) || fail "not all have run"
    expect_nothing_left 5
fi

say "a node that has met its leader does not say that nobody answers at the endpoint"
at=$(free_port)
for name in one two; do # 4 s is how long it waits for an answer
    start $name --nnodes=1:2 --rdzv-endpoint="127.0.0.1:$at" --rdzv-id="$mark" --identity=none --nproc-per-node=1 \
        bash -c 'timeout 5 tail -f /dev/null || true'
    [[ $name == two ]] || wait_until 10 reach || fail "nobody listens"
done
expect_both 0
for name in one two; do expect_not_in "$work/$name.err" 'nobody answers'; done
