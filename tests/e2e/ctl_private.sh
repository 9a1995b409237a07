#!/usr/bin/env bash
# ddpctl asks a job of one node that has its ledger in memory and no secret, as `ddprun --standalone` starts it: by its
# run name and its process id, from another folder; several of them; what a killed one leaves; and what the socket
# lets in.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun ddpctl
ddpctl=$bin/ddpctl
mkdir "$work/one" "$work/two" "$work/elsewhere"
sockets=$XDG_RUNTIME_DIR/ddprun

# Runs ddpctl to its end: arguments… Sets code; output in $work/ctl.out and ctl.err.
ctl() { code=0; timeout 20 "$ddpctl" "$@" >"$work/ctl.out" 2>"$work/ctl.err" </dev/null || code=$?; }
# Starts such a job: folder, run name, seconds of its worker.
alone() { cd "$work/$1"; start "$1" --standalone --rdzv-id="$2" --no-python --nproc-per-node=2 sleep "$3"; cd "$work"; }
listens() { compgen -G "$sockets/$1~*" >/dev/null; }
# The process that has this socket: run name.
process_of() { local all; all=$(compgen -G "$sockets/$1~*"); echo "${all##*~}"; }

say "a job that is over soon leaves nothing"
run 30 --standalone --no-python --nproc-per-node=1 true
expect_code 0
[[ ! -e $sockets ]] || fail "left: $(ls "$sockets")"

say "it answers in its own folder, and from another one, by its name and by its process"
alone one alpha 310
wait_until 20 listens alpha || fail "it does not listen"
[[ $(stat -c %a "$sockets") == 700 ]] || fail "others may enter: $(stat -c %a "$sockets")"
cd "$work/one"
ctl status
expect_code 0
expect_in "$work/ctl.out" '^generation  0 runs since .* with 2 workers$'
cd "$work/elsewhere"
for name in '' alpha "$(process_of alpha)"; do
    # shellcheck disable=SC2086
    ctl status $name
    expect_code 0
    expect_in "$work/ctl.out" '^job +alpha, led by '
    ctl why $name
    expect_code 0
done
ctl stacks alpha 1
expect_code 0
expect_in "$work/ctl.out" '^rank 1 of generation 0: process [0-9]+ on '
ctl events alpha
expect_code 0
ctl status beta
expect_code 1
expect_in "$work/ctl.err" '^ddpctl: beta: no job of this name runs on this host'

say "of two jobs one must be named; the list shows what runs first"
alone two beta 310
wait_until 20 listens beta || fail "it does not listen"
ctl status
expect_code 2
expect_in "$work/ctl.err" '2 jobs of yours run on this host; choose one, such as ddpctl status [0-9]+: .*\(alpha\)'
ctl jobs
expect_code 0
expect_in "$work/ctl.out" '^alpha +runs as [0-9]+ '
expect_in "$work/ctl.out" '^beta +runs as [0-9]+ '
(cd "$work/two" && ctl status && expect_code 0 && expect_in "$work/ctl.out" '^job +beta')
ctl restart beta
expect_code 0
second_runs() { ctl status beta && has "$work/ctl.out" '^generation  1 runs'; }
wait_until 20 second_runs || fail "no restart"

say "a stop by name; the socket goes with the job, and a killed one is cleared away"
ctl stop beta
expect_code 0
join two 60
expect_code 143
! listens beta || fail "the socket is left"
kill -KILL "$(process_of alpha)"
join one 60
listens alpha || fail "the test has killed nothing"
ctl status
expect_code 1
! listens alpha || fail "what is left is not removed"

say "a file in the way, and a folder that others may enter, are not used"
chmod 755 "$sockets" 2>/dev/null || mkdir -m 755 "$sockets"
alone one gamma 1
join one 30
expect_code 0
expect_not_in "$work/one.err" 'warning'
chmod 700 "$sockets"
rmdir "$sockets"

say "root sees who else runs a job here, but not to users who look for their own"
if ((EUID == 0)) && getent passwd daemon >/dev/null; then
    chmod 755 "$work" && chmod 777 "$work/elsewhere" "$TMPDIR"
    cp "$ddprun" "$work/ddprun_here"
    touch "$work/daemons.err" && chmod 666 "$work/daemons.err"
    XDG_RUNTIME_DIR=/nonexistent setpriv --reuid=daemon --regid=daemon --clear-groups env DDPRUN_TEST_MARK="$mark" \
        "$work/ddprun_here" --standalone --rdzv-id="d$mark" --no-python --nproc-per-node=1 sleep 310 \
        >"$work/daemons.out" 2>"$work/daemons.err" </dev/null &
    daemons=$!
    sees() { ctl jobs --all && has "$work/ctl.out" "^d$mark +runs as [0-9]+; is daemon's"; }
    wait_until 20 sees || fail "root does not see it: $(cat "$work/ctl.out")"
    ctl jobs
    expect_not_in "$work/ctl.out" "d$mark"
    ctl status "d$mark"
    expect_code 77
    expect_in "$work/ctl.err" "^ddpctl: d$mark is daemon's: .sudo -u daemon ddpctl status d$mark.$"
    kill -TERM "$daemons"
    wait "$daemons" || true
fi
cd "$work"
expect_nothing_left 5
