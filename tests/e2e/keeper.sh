#!/usr/bin/env bash
# The keeper is killed, or frozen, or killed together with ddprun: the job goes on or ends, and no worker is left.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun
# Memory that was freed is overwritten, so that its use ends ddprun.
export GLIBC_TUNABLES=glibc.malloc.perturb=85

keeper_of() { pgrep --parent "${pid[$1]}" -x job-keeper; }

say "a frozen keeper is killed with its workers, and the job goes on with another one"
start job --standalone --lease=2 --nproc-per-node=2 bash -c '
    [[ $TORCHELASTIC_RESTART_COUNT == 0 ]] || exit 0
    (setsid sleep 328 &); touch "$0/frozen.$RANK"; until [[ -e $0/frozen.go ]]; do sleep 0.05; done; exit 1' "$work"
wait_until 10 test -e "$work/frozen.0" -a -e "$work/frozen.1" || fail "the workers do not run"
keeper=$(keeper_of job)
kill -STOP "$keeper"
touch "$work/frozen.go" # both workers fail now, and nobody tells
join job 30
expect_code 0
expect_in "$work/job.err" 'the keeper did not answer for .* and was killed; the workers of this node died with it'
expect_nothing_left

say "workers are killed in time although the keeper is frozen"
start job --standalone --lease=120 --shutdown-timeout=0.5 bash -c 'trap "" TERM; touch "$0/deaf"; exec sleep 329' "$work"
wait_until 10 test -e "$work/deaf" || fail "the worker does not run"
keeper=$(keeper_of job)
sleeps() { worker=$(pgrep --parent "$keeper" -x sleep); } # until then it is the shell
wait_until 10 sleeps || fail "the worker does not become its program"
kill -STOP "$keeper"
kill -TERM "${pid[job]}"
is_zombie() { [[ $(ps -o state= -p "$1") == Z ]]; } # only the keeper can reap it
wait_until 10 is_zombie "$worker" || fail "the worker lives on"
kill -CONT "$keeper"
join job 10
expect_code 143
expect_nothing_left

say "keepers that are killed at once end the job in the end"
start job --standalone --max-restarts=100 sleep 330
until ended "${pid[job]}"; do
    keeper=$(keeper_of job) && kill -KILL "$keeper" || true
    sleep 0.05
done
join job 10
expect_code 69
expect_in "$work/job.err" 'no new keeper can be started: 5 keepers in a row have died within 10.0 s of their start'
expect_nothing_left

# Kills what `pkill -9 -f ddprun` would, among the processes of this test only.
kill_by_name() {
    local id named=()
    for id in $(marked); do
        ! { cat "/proc/$id/comm"; tr '\0' ' ' <"/proc/$id/cmdline"; } | grep ddprun >/dev/null || named+=("$id")
    done
    kill -KILL "${named[@]}"
}
say "ddprun is killed by its name: the keeper has another one, and leaves nothing; so has its successor"
for successor in no yes; do
    start job --standalone bash -c '(setsid sleep 327 &); touch "$0/$1.$TORCHELASTIC_RESTART_COUNT"; exec sleep 327' "$work" $successor
    wait_until 10 test -e "$work/$successor.0" || fail "the worker does not run"
    if [[ $successor == yes ]]; then
        kill -KILL "$(keeper_of job)"
        wait_until 10 test -e "$work/$successor.1" || fail "no new generation"
    fi
    keeper=$(keeper_of job)
    kill_by_name
    join job 10
    expect_code 137
    expect_nothing_left
    wait_until 5 ended "$keeper" || fail "the keeper stays"
done

# Kills ddprun and keeper of a job. The keeper is stopped first, so that it does not act between the two.
kill_both() {
    local keeper; keeper=$(keeper_of job)
    kill -STOP "$keeper"
    kill -KILL "${pid[job]}" "$keeper"
    join job 10
}
for option in "" "--log-dir=$work/logs"; do
    say "ddprun and keeper are killed at once: the next ddprun ends what they have left ${option:+($option)}"
    # The worker itself dies with its keeper. One of the others carries another job's number, as if it had been submitted.
    start job --standalone $option bash -c '(setsid sleep 326 & setsid sleep 326 & SLURM_JOB_ID=99 setsid sleep 336 &)
        touch "$0/alone"; exec sleep 327' "$work"
    wait_until 10 test -e "$work/alone" || fail "the worker does not run"
    wait_until 10 compgen -G "$TMPDIR/ddprun_*/origin.json" >/dev/null || fail "no record"
    kill_both
    wait_until 5 count_is "sleep 327" 0 || fail "the worker lives"
    count_is "sleep 326" 2 || fail "nothing is left, so this story proves nothing"
    run 20 --standalone sleep 1
    expect_code 0
    expect_in "$work/run.err" '^ddprun: warning: process [0-9]+ \(sleep\) and 1 more, left by a ddprun that was killed together with its keeper, were killed$'
    wait_until 5 count_is "sleep 326" 0 || fail "orphans live"
    count_is "sleep 336" 1 || fail "the process of another job was killed"
    marked | xargs -r kill -KILL # nothing else is left
    expect_nothing_left
    rm "$work/alone"
done

say "a ddprun that a worker of the dead one has started leaves them alone"
start job --standalone bash -c '(setsid sleep 337 &)
    (until [[ -e $0/go ]]; do sleep 0.05; done; "$1" --standalone sleep 1 >"$0/inner.out" 2>"$0/inner.err"; touch "$0/inner") &
    disown; touch "$0/alone"; exec sleep 338' "$work" "$ddprun"
wait_until 10 test -e "$work/alone" || fail "the worker does not run"
wait_until 10 compgen -G "$TMPDIR/ddprun_*/origin.json" >/dev/null || fail "no record"
kill_both
touch "$work/go"
wait_until 20 test -e "$work/inner" || fail "the inner job does not end"
count_is "sleep 337" 1 || fail "the inner ddprun has killed them"
run 20 --standalone sleep 1
expect_code 0
wait_until 5 count_is "sleep 337" 0 || fail "orphans live"
expect_nothing_left

say "a folder without a record goes when it has not been changed for a minute"
mkdir "$TMPDIR/ddprun_abcdef"
run 20 --standalone sleep 0.5
[[ -d $TMPDIR/ddprun_abcdef ]] || fail "its owner may just be starting"
touch --date="1 hour ago" "$TMPDIR/ddprun_abcdef"
run 20 --standalone bash -c 'while [[ -e $0 ]]; do sleep 0.05; done' "$TMPDIR/ddprun_abcdef"
expect_code 0
expect_nothing_left

say "ddprun is killed at a call of its start: no folder stays, although no worker has run"
rounds=20
[[ -z ${DDPRUN_LONG:-} ]] || rounds=200
for ((i = 0; i < rounds; i++)); do
    code=0
    DDPRUN_TEST_MARK=$mark timeout --foreground --signal=KILL "0.0$(printf '%02d' $((1 + RANDOM % 30)))" \
        "$ddprun" --standalone sleep 331 >"$work/job.out" 2>"$work/job.err" </dev/null || code=$?
    expect_code 137
    expect_nothing_left
done
if command -v strace >/dev/null && strace -f -o /dev/null true 2>/dev/null; then
    for call in mkdir,mkdirat:1 chmod,fchmodat:1 flock:1 mkdir,mkdirat:2 mkdir,mkdirat:3 flock:2 rename,renameat,renameat2:1; do
        calls=?${call%:*}; calls=${calls//,/,?}
        code=0
        DDPRUN_TEST_MARK=$mark strace -f -qq -o /dev/null -e trace="$calls" -e inject="$calls:signal=KILL:when=${call#*:}" \
            "$ddprun" --standalone sleep 331 >"$work/job.out" 2>"$work/job.err" </dev/null || code=$?
        expect_code 137
        expect_nothing_left
    done
fi
