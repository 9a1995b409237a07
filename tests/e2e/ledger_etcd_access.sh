#!/usr/bin/env bash
# A ledger in a real etcd that has users and speaks TLS only, with entries that are sealed by the job's --secret-file.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun
need_program etcd
need_program etcdctl
need_program openssl

certificates=$work/certificates
"$root/tests/support/certificates.sh" "$certificates"
password=a-password-that-nobody-else-shows
(
    umask 077
    echo "job:$password" >"$work/user"
    echo "job:wrong" >"$work/wrong"
    echo "$password" >"$work/password" # for grep, whose own command line must not show it
    head -c 32 /dev/urandom | base64 >"$work/secret"
)

etcd_port=$(free_port) peer_port=$(free_port) etcd_pid=
control() {
    ETCDCTL_API=3 etcdctl --endpoints="https://127.0.0.1:$etcd_port" --cacert="$certificates/ca.pem" \
        --cert="$certificates/client.pem" --key="$certificates/client.key" "$@"
}
as_root() { control --user=root:toor "$@"; }
etcd_answers() { control endpoint health >/dev/null 2>&1; }
etcd --data-dir "$work/etcd" --listen-client-urls "https://127.0.0.1:$etcd_port" \
    --advertise-client-urls "https://127.0.0.1:$etcd_port" --listen-peer-urls "http://127.0.0.1:$peer_port" \
    --initial-advertise-peer-urls "http://127.0.0.1:$peer_port" --initial-cluster "default=http://127.0.0.1:$peer_port" \
    --heartbeat-interval 10 --election-timeout 100 --cert-file "$certificates/server.pem" \
    --key-file "$certificates/server.key" --client-cert-auth --trusted-ca-file "$certificates/ca.pem" \
    --auth-token-ttl 1 --bcrypt-cost 4 >"$work/etcd.log" 2>&1 &
etcd_pid=$!
# etcd does not have the mark, so common.sh does not end it.
clean_up() { [[ -z $etcd_pid ]] || kill -KILL "$etcd_pid"; }
wait_until 20 etcd_answers || fail "etcd does not answer: $(tail -n 3 "$work/etcd.log")"
{
    control user add root:toor
    control user grant-role root root
    control user add "job:$password"
    control role add job
    control role grant-permission --prefix=true job readwrite ddprun/
    control user grant-role job job
    control auth enable
} >/dev/null
keys() { as_root get --prefix "ddprun/$1/" --keys-only | grep -c entry; }

access=(--ledger="etcds:localhost:$etcd_port" --etcd-cacert="$certificates/ca.pem" --etcd-cert="$certificates/client.pem"
    --etcd-key="$certificates/client.key")
all=("${access[@]}" --etcd-user-file="$work/user" --secret-file="$work/secret")

say "the leader's node is lost: another one leads with the same ledger; nothing shows the password"
at=$(free_port) rank=0
for name in one two three; do
    start "$name" --node-rank="$((rank++))" --nnodes=2:3 --last-call=20 --rdzv-endpoint="127.0.0.1:$at" \
        --rdzv-id="$mark.1" --lease=4 --nproc-per-node=1 -v "${all[@]}" \
        bash -c 'env >"$0/env.$RANK"; echo >"$0/up.$TORCHELASTIC_RESTART_COUNT.$RANK"
            ((TORCHELASTIC_RESTART_COUNT > 0)) || exec sleep 307' "$work"
done
all_up() { [[ -e $work/up.0.0 && -e $work/up.0.1 && -e $work/up.0.2 ]]; }
wait_until 30 all_up || fail "the workers do not run"
for name in two three; do
    wait_until 20 has "$work/$name.err" 'it can take over' || fail "$name does not find its leader's ledger"
done
shown() { grep -aqFf "$work/password" "$@"; }
! cat /proc/[0-9]*/cmdline 2>/dev/null | shown - || fail "a command line shows the password"
! shown "$work"/env.* || fail "a worker's environment has the password"
sleep 2 # etcd forgets the tokens that were not used for a second
kill_tree "${pid[one]}"
for name in two three; do join "$name" 40; expect_code 0; done
wait "${pid[one]}" 2>/dev/null || true
rm -rf "$TMPDIR"/ddprun_* # on the lost node nobody is left to remove its folder
expect_nothing_left
grep -qh 'this node leads now' "$work/two.err" "$work/three.err" || fail "nobody took the lead"
# A leader that waits for slow nodes writes an entry before the first generation, too.
entries=$(keys "$mark.1")
((entries >= 3)) || fail "not two generations and an end in etcd: $(as_root get --prefix "ddprun/$mark.1/" --keys-only)"
(($(as_root get --prefix "ddprun/$mark.1/" | grep -c '"seal": "[0-9a-f]\{64\}"') == entries + 1)) ||
    fail "a value bears no seal"
! shown "$work"/*.err "$work"/*.out || fail "the log shows the password"

say "somebody who may write to etcd plants an end: it is refused by name, and nobody obeys it"
as_root get --print-value-only "ddprun/$mark.1/1/entry-$(printf %06d $((entries - 1)))" | head -n 1 >"$work/end"
grep -q succeeded "$work/end" || fail "the end of the first job is not in etcd"
rm -f "$work"/up.*
at=$(free_port)
for name in one two; do
    start "$name" --node-rank="$([[ $name == one ]] && echo 0 || echo 1)" --nnodes=2 --rdzv-endpoint="127.0.0.1:$at" \
        --rdzv-id="$mark.2" --lease=2 --join-timeout=4 --nproc-per-node=1 --max-restarts=3 "${all[@]}" \
        bash -c 'echo >"$0/up.$TORCHELASTIC_RESTART_COUNT.$RANK"; until [[ -e $0/go ]]; do sleep 0.05; done; exit 9' "$work"
done
wait_until 20 test -e "$work/up.0.0" -a -e "$work/up.0.1" || fail "the workers do not run"
next=ddprun/$mark.2/1/entry-$(printf %06d "$(keys "$mark.2")")
as_root put "$next" <"$work/end" >/dev/null
touch "$work/go"
for name in one two; do join "$name" 30; expect_code 69; done
expect_nothing_left
expect_in "$work/one.err" "ledger entry $next in etcd bears no seal, so somebody without"
expect_not_in "$work/one.err" 'success'

# Runs a job of one node that does not start: its exit code, the pattern that its only line has, options.
refused() {
    local expected=$1 pattern=$2; shift 2
    run 20 --standalone --nproc-per-node=1 --rdzv-id="$mark.3" "$@" true
    expect_code "$expected"
    expect_in "$work/run.err" "$pattern"
    (($(grep -c . "$work/run.err") <= 2)) || fail "more than a line and its report"
    expect_nothing_left
}
say "what is wrong with user or certificate is said in one line, and nothing is tried again and again"
refused 69 'it does not know user job with the password in .*/wrong \(--etcd-user-file\)' "${access[@]}" --etcd-user-file="$work/wrong"
refused 69 'it lets in users only; give --etcd-user-file=PATH' "${access[@]}"
refused 69 'of no authority in .*other_ca.pem \(--etcd-cacert\)' "${all[@]}" --etcd-cacert="$certificates/other_ca.pem"
refused 69 'does it speak TLS\? give --ledger=etcds:HOST:PORT' --ledger="etcd:localhost:$etcd_port"
refused 2 'past.pem: has expired on ' "${all[@]}" --etcd-cert="$certificates/past.pem" --etcd-key="$certificates/past.key"
chmod 644 "$work/user"
refused 2 '--etcd-user-file: .*chmod 600' "${all[@]}"
chmod 600 "$work/user"
refused 2 'etcds, not etcd' --ledger="etcd:localhost:$etcd_port" --etcd-cacert="$certificates/ca.pem"

say "a dry run tells it, without the password"
run 20 --dry-run --nnodes=2 --rdzv-endpoint=host:1 --rdzv-id=x "${all[@]}" true
expect_code 0
expect_in "$work/run.out" "etcds:localhost:$etcd_port"
expect_in "$work/run.out" "etcd's user +the one in $work/user"
expect_in "$work/run.out" "entries are sealed +with the secret in $work/secret"
! shown "$work/run.out" || fail "the dry run shows the password"

say "--check finds the node that does not get into etcd"
options=(--check --nnodes=2 --rdzv-endpoint="127.0.0.1:$(free_port)" --rdzv-id="$mark.4")
start one --node-rank=0 "${options[@]}" "${all[@]}"
start two --node-rank=1 "${options[@]}" "${all[@]}" --etcd-user-file="$work/wrong"
for name in one two; do join "$name" 40; done
expect_nothing_left
expect_code 69
expect_in "$work/one.out" '^  ledger +WRONG'
expect_in "$work/one.out" "cannot see the leader's ledger: etcd localhost:$etcd_port: it does not know user job"
