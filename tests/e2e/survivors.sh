#!/usr/bin/env bash
# Processes that ddprun may not kill, or that /proc does not show. They run on, ddprun says so once, and nobody waits for
# them longer than a second: not the next generation, not the end of the job, not SIGTERM.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun
need_root
unshare --mount true 2>/dev/null || skip "no mount namespace"

# Two workers of generation 0 run a script that leaves a process, and fail. Those of generation 1 succeed.
leaves='
    [[ $TORCHELASTIC_RESTART_COUNT == 0 ]] || exit 0
    $0; touch "$TMPDIR/left.$RANK"; until [[ -e $TMPDIR/left.0 && -e $TMPDIR/left.1 ]]; do sleep 0.02; done; exit 3'
# The job within some surroundings: pattern of the line about the survivors, how often it comes, what a worker leaves,
# then the words that make the surroundings. It ends in time, and what was left is still there.
survives() {
    local pattern=$1 times=$2 script=$3 begin=$SECONDS; shift 3
    printf '#!/bin/bash\n%s\n' "$script" >"$work/leave"
    chmod 755 "$work/leave"
    rm -f "$TMPDIR"/{left,root}.*
    code=0
    DDPRUN_TEST_MARK=$mark timeout --kill-after=5 60 "$@" "$ddprun" --standalone --nproc-per-node=2 --max-restarts=1 \
        bash -c "$leaves" "$work/leave" >"$work/run.out" 2>"$work/run.err" </dev/null || code=$?
    in_time 20 "$begin" || fail "it took $((SECONDS - begin)) s"
    expect_code 0
    (($(grep -cE "^ddprun: (warning: )?$pattern" "$work/run.err") == times)) || fail "not $times lines with \"$pattern\""
    expect_not_in "$work/run.err" 'hangs|unusable|still alive'
}
end_survivors() {
    # It may still be the shell that becomes the program.
    wait_until 10 pgrep --full "^sleep $1\$" >/dev/null || fail "nothing is left of the survivors"
    pkill -KILL --full "^sleep $1\$" || fail "nothing was left of the survivors"
    rm -f "$TMPDIR"/{left,root}.*
    expect_nothing_left
}
hidden='something that the workers have started runs on: /proc does not show it'

say "there is no /proc: process groups are killed, and what has left its group runs on"
survives "$hidden" 1 '(setsid sleep 341 &) ; sleep 342 &' unshare --mount bash -c 'mount -t tmpfs none /proc; exec "$@"' no-proc
expect_in "$work/run.err" '^ddprun: warning: /proc is missing here or shows another PID namespace'
! pgrep --full '^sleep 342$' || fail "a process of a worker's own group is left"
end_survivors 341

say "the PID namespace is a new one, but /proc is that of the host: no number of it is used"
# The first process of the namespace is ddprun, so its end is the end of all others.
survives "$hidden" 1 '(setsid sleep 343 &)' unshare --pid --fork
expect_in "$work/run.err" '^ddprun: warning: /proc is missing here or shows another PID namespace'
rm -f "$TMPDIR"/left.*
expect_nothing_left

say "without /proc a check tells what it has seen"
code=0
DDPRUN_TEST_MARK=$mark timeout 30 unshare --mount bash -c 'mount -t tmpfs none /proc; exec "$@"' no-proc \
    "$ddprun" --check --standalone --nproc-per-node=2 bash >"$work/run.out" 2>"$work/run.err" </dev/null || code=$?
((code == 0 || code == 69)) || fail "exit code $code"
expect_in "$work/run.out" '^  workers +ok'

say "without /proc a job ends at SIGTERM"
forget job
DDPRUN_TEST_MARK=$mark unshare --mount bash -c 'mount -t tmpfs none /proc; exec "$@"' no-proc \
    "$ddprun" --standalone --nproc-per-node=2 bash -c '(setsid sleep 344 &); touch "$0/up.$RANK"; sleep 300' "$work" \
    >"$work/job.out" 2>"$work/job.err" </dev/null &
pid[job]=$!
both_up() { [[ -e $work/up.0 && -e $work/up.1 ]]; }
wait_until 10 both_up || fail "the workers do not run"
kill -TERM "${pid[job]}"
join job 20
expect_code 143
end_survivors 344

# A program that becomes root, as sudo does.
for_others
chmod 1777 "$TMPDIR"
mkdir -m 755 "$work/programs"
cp "$ddprun" "$work/programs/"
ddprun=$work/programs/ddprun
install -m 4755 "$(command -v setpriv)" "$work/programs/become"
# Runs a command as root, and waits until it is root: before that, it may be killed. (A setuid program does not get
# TMPDIR.)
cat >"$work/programs/rooted" <<ROOTED
#!/bin/bash
is=$TMPDIR/root.\$RANK
rm -f "\$is"
$work/programs/become --reuid=0 bash -c 'touch "\$0"; exec "\$@"' "\$is" "\$@" &
until [[ -e \$is ]]; do sleep 0.02; done
ROOTED
chmod 755 "$work/programs/rooted"
user=(setpriv --reuid=54321 --regid=54321 --clear-groups)
"${user[@]}" "$work/programs/become" --reuid=0 true || skip "no setuid programs in $work"

say "a setuid program may not be killed: this is no failure of the job"
survives "process [0-9]+ \\(sleep\\) of user 0, which a worker has started, may not be killed from here; it runs on" 2 \
    "setsid $work/programs/rooted sleep 345" "${user[@]}"
end_survivors 345

# Arguments: expected code, what the worker does.
as_user() {
    local begin=$SECONDS
    code=0
    DDPRUN_TEST_MARK=$mark timeout --kill-after=5 60 "${user[@]}" "$ddprun" --standalone --max-restarts=1 \
        bash -c "$2" "$work/programs/rooted" >"$work/run.out" 2>"$work/run.err" </dev/null || code=$?
    in_time 20 "$begin" || fail "it took $((SECONDS - begin)) s"
    expect_code "$1"
}
say "nor is what a worker that succeeds leaves in its own session"
as_user 0 '$0 sleep 347'
expect_in "$work/run.err" '^ddprun: warning: process [0-9]+ \(sleep\) of user 0, which a worker has started, may not be killed'
expect_not_in "$work/run.err" 'left running'
end_survivors 347

say "but a program that has become root in the place of a worker may be the training: no other generation runs beside it"
as_user 5 '$0 sleep 348; exit 5'
expect_in "$work/run.err" 'no restart: node .* is unusable: process [0-9]+ \(sleep\) of user 0 belongs to a worker, and may not be killed from here'
expect_not_in "$work/run.err" 'generation 1'
end_survivors 348

say "a setuid program that /proc hides (hidepid)"
survives "process [0-9]+, which a worker has started, may not be killed from here; it runs on" 2 "setsid $work/programs/rooted sleep 346" unshare --mount bash -c \
    'mount -t proc -o hidepid=2 proc /proc; exec setpriv --reuid=54321 --regid=54321 --clear-groups "$@"' hidden
end_survivors 346
