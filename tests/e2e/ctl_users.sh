#!/usr/bin/env bash
# ddpctl and the jobs of other users of the host: whose job it is, the command that asks it, and that this command works.
# What a refused question leaves in the job's log.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun ddpctl
need_root
need_program setpriv
getent passwd daemon >/dev/null || skip "there is no user called daemon"

chmod 755 "$work"
mkdir "$work/bin" "$work/home"
cp "$bin/ddpctl" "$bin/ddprun" "$work/bin/"
chown daemon "$work/home" "$TMPDIR"
# What a person types in the advice, where the test has no sudo: sudo -u USER COMMAND…
cat >"$work/bin/sudo" <<'EOF'
#!/bin/sh
[ "$1" = -u ] && user=$2 && shift 2 && exec setpriv --reuid="$user" --regid="$user" --clear-groups "$@"
EOF
chmod 755 "$work/bin/sudo"
export PATH=$work/bin:$PATH
cd "$work/home"
# Runs ddpctl as root: arguments… Sets code; output in $work/ctl.out and ctl.err.
ctl() { code=0; timeout 20 ddpctl "$@" >"$work/ctl.out" 2>"$work/ctl.err" </dev/null || code=$?; }
# Follows the advice of the last message.
follow_advice() {
    local advice
    advice=$(sed -n 's/.*`\(.*\)`.*/\1/p' "$work/ctl.err")
    [[ -n $advice ]] || fail "no advice: $(cat "$work/ctl.err")"
    code=0
    timeout 20 sh -c "$advice" >"$work/ctl.out" 2>"$work/ctl.err" </dev/null || code=$?
}
has_entry() { [[ -e .ddprun/theirs/entry-000000.json ]]; }

say "root asks a job of another user: whose it is, immediately, and the command that works"
ddprun=$work/bin/as_daemon
printf '#!/bin/sh\nexec sudo -u daemon %s "$@"\n' "$work/bin/ddprun" >"$ddprun"
chmod 755 "$ddprun"
touch "$work/theirs.err" && chmod 666 "$work/theirs.err"
start theirs --nnodes=1 --rdzv-endpoint=127.0.0.1:0 --rdzv-id=theirs --ledger=directory:.ddprun --no-python sleep 310
wait_until 20 has_entry || fail "no generation"
for command in status why stop history 'stacks 0' 'logs 0' 'drain n1'; do
    # shellcheck disable=SC2086
    ctl $command
    expect_code 77
    expect_in "$work/ctl.err" "^ddpctl: theirs is daemon's: .sudo -u daemon ddpctl $command.$"
    expect_not_in "$work/ctl.err" 'remove|asking again'
done
ctl jobs
expect_code 0
expect_in "$work/ctl.out" "^theirs +is daemon's "
ctl forget theirs --force
expect_code 1
expect_in "$work/ctl.out" "theirs is left alone: it is daemon's"
has_entry || fail "the ledger of a running job is gone"
ctl status --ledger=.ddprun/theirs
follow_advice
expect_code 0
expect_in "$work/ctl.out" '^generation  0 runs'
mkdir "$work/elsewhere"
ctl status
follow_advice
expect_code 0

say "a user who may not even list the folder"
ddpctl_of_nobody() {
    code=0
    setpriv --reuid=65534 --clear-groups "$work/bin/ddpctl" "$@" >"$work/ctl.out" 2>"$work/ctl.err" </dev/null || code=$?
}
ddpctl_of_nobody status
expect_code 77
expect_in "$work/ctl.err" "^ddpctl: .ddprun is daemon's: .sudo -u daemon ddpctl status.$"

say "a job without a secret: one sentence, code 77, and one line in its log for all the questions"
ctl status
follow_advice
ctl stop
follow_advice
expect_code 0
join theirs 30
expect_code 143
ddprun=$work/bin/ddprun
mkdir "$work/own" && cd "$work/own"
at=$(free_port)
for i in 0 1; do
    start "node$i" --nnodes=2 --node-rank=$i --rdzv-endpoint="127.0.0.1:$at" --rdzv-id=open --ledger=memory --identity=none \
        --nproc-per-node=1 --no-python sleep 310
done
wait_until 20 count_is 'sleep 310' 2 || fail "no workers"
for _ in 1 2 3; do
    ctl status --rdzv-endpoint="127.0.0.1:$at"
    expect_code 77
    expect_in "$work/ctl.err" '^ddpctl: this job answers only to its own user who has its secret: '
done
(($(grep -c 'refused operator' "$work/node0.err") == 1)) || fail "not one line in the log"
for i in 0 1; do kill -TERM "${pid[node$i]}"; done
for i in 0 1; do join "node$i" 30; expect_code 143; done
cd "$work"
expect_nothing_left 5
