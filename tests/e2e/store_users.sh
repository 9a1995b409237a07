#!/usr/bin/env bash
# Who gets into the workers' store of a job on two hosts (network namespaces, as root): everything of PyTorch's own, and
# processes of the job's user; another user of another host gets nothing. Argument: debian or current (PyTorch).
if [[ -z ${FAULTS_INSIDE:-} ]] && unshare --net --mount --time true 2>/dev/null; then
    FAULTS_INSIDE=1 exec unshare --net --mount bash "$0" "$@"
fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/pytorch_common.sh" "${1:-debian}"
source "$here/../faults/hosts.sh"
need_built ddprun
need_program setpriv
need_program ss
need_hosts
ledger=$work/ledger
mkdir "$ledger"
chmod 755 "$work"
export GLOO_SOCKET_IFNAME=eth0
clean_up() {
    local name
    for name in "${!init[@]}"; do kill -KILL "${init[$name]}"; done
}

# Connects to the store and sends a SET and a PING, as PyTorch's clients do. Prints "served" if the answer comes.
cat >"$work/call.py" <<'PY'
import socket, struct, sys
s = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=30)
def text(t): return struct.pack("<Q", len(t)) + t
try:
    s.sendall(b"\x00" + struct.pack("<I", 0x3C85F7CE) + b"\x01" + text(b"/intruder") + text(b"x") + b"\x0d" + b"ping")
    print("served" if s.recv(4) == b"ping" else "closed")
except ConnectionError:
    print("closed")
PY
# What a process of this user on this host gets: host, user id.
caller() {
    local as=(setpriv --reuid "$2" --regid "$2" --clear-groups)
    on "$1" "${as[@]}" /usr/bin/python3 "$work/call.py" "$address" "$port" 2>&1
}
node() {
    enter "$1"
    : >"$work/$1.err"
    DDPRUN_TEST_MARK=$mark TMPDIR=$work/tmp.$1 "${entered[@]}" "$ddprun" --nnodes=2 \
        --rdzv-endpoint="$(address n1):29500" --rdzv-id="$mark" --max-restarts=2 -v "${@:2}" \
        >"$work/$1.out" 2>"$work/$1.err" </dev/null &
    pid[$1]=$!
}
ready() { [[ -s $work/ready.0 && -s $work/ready.1 ]]; }

for name in n1 n2; do boot_host "$name"; done
for secret in file none; do
    say "a PyTorch job on two hosts, secret: $secret"
    head -c 32 /dev/urandom | base64 >"$work/secret"
    chmod 600 "$work/secret"
    options=(--identity=none)
    [[ $secret == none ]] || options=(--secret-file="$work/secret")
    rm -f "$work"/{ready.*,go}
    for name in n1 n2; do node "$name" "${options[@]}" "$python" "$here/store_users.py" "$work"; done
    wait_until 300 ready || fail "the workers and their children do not get into the store"
    read -r address port <"$work/ready.0"

    say "the store listens on the address that workers are told, and on loopback"
    [[ $address == "$(address n1)" ]] || fail "workers are told $address"
    listening=$(on n1 ss -Hltn "sport = :$port" | awk '{ print $4 }' | sort | paste -sd ' ')
    [[ $listening == "$address:$port 127.0.0.1:$port"* ]] || fail "it listens on $listening"
    expect_in "$work/n1.err" "the workers' store listens at port $port of $address and loopback"

    say "another user gets nothing, on the store's host and on the other one"
    for name in n1 n2 n2; do
        [[ $(caller "$name" 65534) == closed ]] || fail "user 65534 of $name got: $(caller "$name" 65534)"
    done
    expect_in "$work/n1.err" 'refused a connection from 10.78.0.2:.* of user 65534 of node n2, '
    expect_in "$work/n1.err" 'refused a connection from 10.78.0.1:.* of user 65534 of this host, '
    (($(grep -c 'user 65534 of node n2' "$work/n1.err") == 1)) || fail "not said once"

    say "other processes of the job's user get in"
    for name in n1 n2; do [[ $(caller "$name" 0) == served ]] || fail "root of $name is refused"; done

    touch "$work/go"
    for name in n1 n2; do join "$name" 120; expect_code 0; done
    expect_nothing_left
done
