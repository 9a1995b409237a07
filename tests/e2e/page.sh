#!/usr/bin/env bash
# ddpctl page and ddpctl metrics with real jobs: what a browser and Prometheus get, also when another node leads and
# after the end; who gets nothing; a reader that does not read.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun ddpctl
need_root # each node gets a host name of its own
need_program python3
unshare --uts true 2>/dev/null || skip "host names cannot be set here"

ddpctl=$bin/ddpctl
# ddprun under the host name that HOST_NAME says.
cat >"$work/in_host" <<'P'
#!/bin/sh
exec unshare --uts -- sh -c 'hostname "$0"; exec "$@"' "$HOST_NAME" "$REAL_DDPRUN" "$@"
P
chmod +x "$work/in_host"
export REAL_DDPRUN=$ddprun
ddprun=$work/in_host
secret() { (umask 077; head -c 32 /dev/urandom | base64 >"$1"); } # file
secret "$work/ours"
secret "$work/theirs"
export LOGNAME=alice
cd "$work"

proof=--secret-file=$work/ours
# Starts a node of a job: name, rank, more options and the worker.
node() {
    local name=$1 rank=$2; shift 2
    HOST_NAME=n$((rank + 1)) start "$name" --node-rank="$rank" --rdzv-endpoint="127.0.0.1:$at" --rdzv-id="$id" \
        --lease=2 --join-timeout=60 --last-call=0 --ledger="directory:$ledger" "$proof" "$@"
}
# Starts the page of the job, and sets url, door (without the token) and token: more options.
page=0
serve() {
    : >page.out
    "$ddpctl" page --json --ledger="$ledger" --secret-file="$work/ours" "$@" >page.out 2>page.err </dev/null &
    page=$!
    wait_until 20 has page.out '"url"' || fail "no address"
    url=$(jq -r .url page.out)
    door=${url%%\?*} token=${url##*=}
}
# shellcheck disable=SC2317,SC2086
clean_up() { kill $page ${other:-} 2>/dev/null; }
# Asks as a program does: path. Sets status; the answer is in got.out.
get() {
    status=$(python3 "$e2e/http_get.py" "$door${1#/}" "${2-$token}" got.out)
}
shows() { get "$1" && [[ $status == 200 ]] && grep -qE -- "$2" got.out; } # path, pattern
# Follows the events into events.out: name of the file.
follow() { python3 "$e2e/http_get.py" "${door}events" "$token" "$1" follow & other=$!; }

say "a page of a job of two nodes: how it stands, as JSON and as metrics"
ledger=$work/ledger id=$mark.1 at=$(free_port)
node one 0 --nnodes=1:2 --nproc-per-node=2 --join-interval=1 sleep 310
wait_until 30 test -e "$ledger/$id/entry-000000.json" || fail "no generation"
serve
wait_until 30 shows status.json '"waiting_for": "|"world_size": [24]' || fail "no status"
node two 1 --nnodes=1:2 --nproc-per-node=2 --join-interval=1 sleep 310
wait_until 60 shows status.json '"world_size": 4' || fail "no world of two nodes"
wait_until 30 shows metrics '^ddprun_nodes\{run="[^"]*",state="running"\} 2$' || fail "no metrics"
grep -qE '^ddprun_up\{run="[^"]*"\} 1$' got.out || fail "not up"
wait_until 30 shows history.json '"kind": "generation"' || fail "no history"
get /
grep -q '"link":"answers"' got.out || fail "the page does not have the state"
before=$(jq -r .generation <(get status.json; cat got.out))

# A request that comes byte by byte, a second each: it is cut off at last, which is looked at below.
python3 - "$door" >slow.out 2>&1 <<'P' &
import socket, sys, time
host, port = sys.argv[1].removeprefix("http://").rstrip("/").split(":")
one = socket.create_connection((host, int(port)))
one.settimeout(1)
begun = time.monotonic()
for byte in b"GET / HTTP/1.1\r\n" + b"X" * 100:
    try:
        one.sendall(bytes([byte]))
        if not one.recv(100):
            break
    except TimeoutError:
        continue
    except OSError:
        break
print("cut off" if time.monotonic() - begun > 5 else "too early")
P
slow=$!

say "the address stays when another node leads"
follow events.out
wait_until 20 has events.out '^event: status' || fail "no event"
kill -KILL "${pid[one]}"
wait_until 60 shows status.json '"leader": "n2"' || fail "the next leader is not shown"
wait_until 60 shows status.json '"world_size": 2' || fail "the next generation is not shown"
(($(jq -r .generation got.out) > before)) || fail "no newer generation"
wait_until 20 has events.out '"leader":"n2"' || fail "the events have ended with the leader"
shows metrics '^ddprun_restarts_total\{run="[^"]*",cause="node"\} 1$' || fail "the restart is not counted"
kill $other

say "ddpctl metrics prints the same once"
timeout 20 "$ddpctl" metrics --ledger="$ledger" --secret-file="$work/ours" >metrics.out 2>metrics.err || fail "code $?"
expect_in metrics.out '^ddprun_up\{run="[^"]*"\} 1$'
expect_in metrics.out '^ddprun_nodes\{run="[^"]*",state="running"\} 1$'
expect_not_in metrics.out "$token|n2|127.0.0.1"

say "whoever has no token gets 401 and nothing else, another user of this host, too"
for path in '' metrics events status.json history.json nothing '?token=wrong'; do
    get "$path" ""
    [[ $status == 401 ]] || fail "$path: $status without a token"
    [[ $(cat got.out) == 'the token is missing or wrong; open the address that ddpctl page has printed' ]] ||
        fail "$path tells"
done
port=${door%/} port=${port##*:}
# shellcheck disable=SC2016
nobodys=$(setpriv --reuid=nobody --clear-groups bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$0"
    printf "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" >&3; cat <&3' "$port")
[[ $nobodys == 'HTTP/1.1 401 '* ]] || fail "nobody gets $nobodys"
[[ $nobodys != *ddprun_up* ]] || fail "nobody gets metrics"
# What another user can see of the process has no token.
setpriv --reuid=nobody --clear-groups cat "/proc/$page/cmdline" | tr '\0' ' ' >seen.out
expect_not_in seen.out "$token"

say "a reader that stops reading costs little and keeps nobody waiting"
rss() { awk '/^VmRSS/ {print $2}' "/proc/$page/status"; }
at_first=$(rss)
python3 - "$door" "$token" <<'P' &
import socket, sys, time
host, port = sys.argv[1].removeprefix("http://").rstrip("/").split(":")
lazy = []
for _ in range(15):
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    one.connect((host, int(port)))
    one.sendall(f"GET /events HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {sys.argv[2]}\r\n\r\n".encode())
    lazy.append(one)
time.sleep(600)
P
other="$! "
full() { [[ $(python3 "$e2e/http_get.py" "${door}events" "$token" got.out status) == 503 ]]; }
# One place is left for a reader who reads.
python3 "$e2e/http_get.py" "${door}events" "$token" reader.out follow &
other+=$!
wait_until 20 has reader.out '^event: status' || fail "the reader gets nothing"
wait_until 20 full || fail "there is no limit of readers"
timeout 30 "$ddpctl" restart --ledger="$ledger" --secret-file="$work/ours" >restart.out 2>&1 || fail "no restart"
wait_until 30 has reader.out 'restarted by alice' || fail "the reader is kept waiting"
shows metrics '^ddprun_up' || fail "no metrics beside readers"
(($(rss) - at_first < 16 * 1024)) || fail "15 readers cost $(($(rss) - at_first)) KiB"
# shellcheck disable=SC2086
kill $other

say "a request that does not come to its end is cut off"
wait_until 60 ended $slow || fail "a slow request is not cut off"
expect_in slow.out '^cut off'
shows metrics '^ddprun_up' || fail "the page has gone"

say "the end of the job is shown, and afterwards from its ledger"
timeout 30 "$ddpctl" stop --ledger="$ledger" --secret-file="$work/ours" >stop.out 2>&1 || fail "no stop"
join two 60
expect_code 143
wait_until 30 shows metrics '^ddprun_exit_code\{run="[^"]*"\} 143$' || fail "no end in the metrics"
wait_until 30 shows '' '"link":"ended"' || fail "the page does not know the end"
kill -INT $page
wait $page || fail "the page ends with code $?"
serve
wait_until 20 shows '' '"link":"ended"' || fail "a job that has ended is not shown"
wait_until 20 shows metrics '^ddprun_ended\{run="[^"]*"\} 1$' || fail "no metrics of a job that has ended"
grep -qE '^ddprun_up\{run="[^"]*"\} 0$' got.out || fail "a job that has ended is up"
get history.json
[[ $(jq -r '.entries[-1].kind' got.out) == end ]] || fail "no history of a job that has ended"
kill -TERM $page
wait $page || fail "the page ends with code $?"

say "addresses and token files that are no good are refused"
refused() { # pattern, options…
    code=0
    timeout 20 "$ddpctl" page --ledger="$ledger" "${@:2}" >ctl.out 2>ctl.err </dev/null || code=$?
    expect_in ctl.err "$1"
    [[ ! -s ctl.out ]] || fail "an address is printed"
}
refused 'give one address of this host' --listen=0.0.0.0:0
refused 'not an IP address' --listen=login1:8090
refused 'cannot listen on 192.0.2.1 port 8090' --listen=192.0.2.1:8090
secret token
chmod 644 token
refused 'token-file: .*token' --token-file=token
expect_code 2
chmod 600 token
serve --token-file=token
[[ -z $token ]] || fail "the token of a file is printed"
get metrics "$(cat token)"
[[ $status == 200 ]] || fail "the token of the file is not the token: $status"
kill $page
wait $page || true
expect_nothing_left 5

say "a job that answers nobody tells through its ledger"
id=$mark.2 at=$(free_port)
# shellcheck disable=SC2016
proof=--identity=none node alone 0 --nnodes=1 --max-restarts=1 sh -c '[ "$TORCHELASTIC_RESTART_COUNT" = 1 ] && exec sleep 310
    while [ ! -e go ]; do sleep 0.1; done; exit 9'
wait_until 30 test -e "$ledger/$id/entry-000000.json" || fail "no generation"
serve
wait_until 20 shows '' '"link":"silent"' || fail "it is not said that only the ledger tells"
shows metrics '^ddprun_world_size\{run="[^"]*"\} 1$' || fail "no metrics from the ledger"
touch go
wait_until 30 shows metrics '^ddprun_generation\{run="[^"]*"\} 1$' || fail "the ledger is not read again"
kill -TERM "${pid[alone]}"
join alone 60
kill $page
wait $page || true

say "without the job's secret there is no page"
id=$mark.3 at=$(free_port)
node one 0 --nnodes=2 sleep 310
node two 1 --nnodes=2 sleep 310
wait_until 30 test -e "$ledger/$id/entry-000000.json" || fail "no generation"
for command in page metrics; do
    code=0
    timeout 30 "$ddpctl" $command --ledger="$ledger" --secret-file="$work/theirs" \
        >ctl.out 2>ctl.err </dev/null || code=$?
    expect_code 77
    [[ ! -s ctl.out ]] || fail "$command prints something"
done
timeout 30 "$ddpctl" stop --ledger="$ledger" --secret-file="$work/ours" >stop.out 2>&1 || fail "no stop"
for name in one two; do join "$name" 60; done
expect_nothing_left 5
