#!/usr/bin/env bash
# Nothing is left behind, and nothing leaks in. What a worker starts is gone before the next generation, whatever it has
# done to escape; signals that are the workers' business reach them; a worker inherits one descriptor of ddprun's. With
# DDPRUN_LONG each of the first stories is told 50 times.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun
rounds=1
[[ -z ${DDPRUN_LONG:-} ]] || rounds=50

# Each worker of generation 0 starts a script so many times, waits until some of it runs, and fails. A worker of
# generation 1 succeeds only if nothing of that is left; all of it is known by its command line. Arguments: title, how
# many; the script comes on standard input.
mkdir "$work/kids"
kids="^(setsid )?bash $work/kids/"
gone_before_the_next() {
    local round
    say "$1"
    cat >"$work/kids/kid"
    for ((round = 0; round < rounds; round++)); do
        run 60 --standalone --nproc-per-node=2 --max-restarts=1 bash -c '
            if [[ $TORCHELASTIC_RESTART_COUNT == 0 ]]; then
                for ((i = 0; i < $3; i++)); do setsid bash "$0/kids/kid" </dev/null >/dev/null 2>&1 & done
                until pgrep --full "$1" >/dev/null; do sleep 0.01; done
                touch "$0/started.$2.$RANK"
                until [[ -e $0/started.$2.$((1 - RANK)) ]]; do sleep 0.01; done
                exit 3
            fi
            ! pgrep --full --list-full "$1" >"$0/alive.$RANK" || exit 5' "$work" "$kids" "$RANDOM$RANDOM" "$2"
        ((code == 0)) || fail "exit code $code; alive: $(cat "$work"/alive.*)"
        expect_nothing_left
    done
}
# A sleep with a command line that $kids finds.
stays="exec -a 'bash $work/kids/sleeper' sleep 325"

gone_before_the_next "daemons: two forks and a session of their own" 1 <<KID
(setsid bash -c "(setsid bash -c \"$stays\" &)" &)
$stays
KID

gone_before_the_next "stopped processes" 1 <<'KID'
kill -STOP $$
KID

gone_before_the_next "processes that ignore all signals" 1 <<KID
trap "" TERM INT HUP QUIT USR1 USR2
$stays
KID

# 500 for each of two workers.
gone_before_the_next "a thousand processes, each with a session of its own" 500 <<<"$stays"

gone_before_the_next "processes that keep forking while they are killed" 1 <<KID
left=\${1:-9}
while ((left-- > 0)); do setsid bash "\$0" \$((left / 2)) & done
$stays
KID

say "a worker inherits its standard streams and the descriptors for progress and events, nothing else"
run 20 --standalone --nproc-per-node=2 python3 -c '
import os
names = sorted(int(name) for name in os.listdir("/proc/self/fd"))
own = [n for n in names if os.path.exists(f"/proc/self/fd/{n}")]  # not the one that listed them
ours = {int(os.environ["DDPRUN_PROGRESS_FD"]), int(os.environ["DDPRUN_EVENTS_FD"])}
print("descriptors", *[n for n in own if n not in ours])'
expect_code 0
(($(grep -c 'descriptors 0 1 2$' "$work/run.out") == 2)) || fail "others leak"

say "what a worker leaves running may print until the end of its generation, and is named when it is killed then"
run 20 --standalone --nproc-per-node=2 bash -c '
    ((RANK == 1)) || { (until [[ -e $0/ended ]]; do sleep 0.05; done; echo late; touch "$0/printed"; exec sleep 331) &
        echo early; exit; }
    touch "$0/ended"; until [[ -e $0/printed ]]; do sleep 0.05; done' "$work"
expect_code 0
expect_in "$work/run.out" '^\[default0\]:early$'
expect_in "$work/run.out" '^\[default0\]:late$'
expect_in "$work/run.err" '^ddprun: process [0-9]+ \(sleep\), which the workers had left running, was ended; --wait-for-helpers='
expect_nothing_left

say "SIGUSR1 and SIGUSR2 reach all workers, and the job goes on"
start job --standalone --nproc-per-node=2 bash -c '
    trap "echo first >>$0/heard.$RANK" USR1; trap "echo second >>$0/heard.$RANK; exit 0" USR2
    touch "$0/up.$RANK"; while :; do sleep 0.05; done' "$work"
both_up() { [[ -e $work/up.0 && -e $work/up.1 ]]; }
wait_until 10 both_up || fail "the workers do not run"
kill -USR1 "${pid[job]}"
both_heard() { [[ -s $work/heard.0 && -s $work/heard.1 ]]; }
wait_until 10 both_heard || fail "not both have heard"
kill -USR2 "${pid[job]}"
join job 20
expect_code 0
for rank in 0 1; do [[ $(<"$work/heard.$rank") == $'first\nsecond' ]] || fail "rank $rank heard $(<"$work/heard.$rank")"; done
expect_nothing_left

say "what a worker dies of later, and what it leaves running, is judged as without the signal"
rm -f "$work"/up.*
start job --standalone --nproc-per-node=2 --max-restarts=0 bash -c '
    trap "sleep 0.3; kill -SEGV \$\$" USR1; touch "$0/up.$RANK"; while :; do sleep 0.05; done' "$work"
wait_until 10 both_up || fail "the workers do not run"
kill -USR1 "${pid[job]}"
join job 20
expect_code 139
expect_in "$work/job.err" 'was killed by signal 11 \(SIGSEGV\) after .*; invalid memory access'
expect_not_in "$work/job.err" 'while ddprun was stopping it; generation 0 ends'
expect_nothing_left

say "a signal that --signals-to-handle names stops the job"
rm -f "$work"/up.*
start job --standalone --nproc-per-node=2 --signals-to-handle=SIGTERM,SIGUSR1 bash -c '
    trap "exit 0" USR1; touch "$0/up.$RANK"; while :; do sleep 0.05; done' "$work"
wait_until 10 both_up || fail "the workers do not run"
kill -USR1 "${pid[job]}"
join job 20
expect_code 138
expect_nothing_left

say "a worker stops the job by a signal to its parent process, as under torchrun"
# What the workers print proves that the stop took its usual way: they got the signal, and time to end.
for signal in TERM:143 INT:130; do
    run 20 --standalone --nproc-per-node=2 bash -c '
        trap "echo heard; exit 0" "$1"
        touch "$0/$1.up.$RANK"; until [[ -e $0/$1.up.$((1 - RANK)) ]]; do sleep 0.05; done
        ((RANK == 0)) || kill -"$1" $PPID; while :; do sleep 0.05; done' "$work" "${signal%:*}"
    expect_code "${signal#*:}"
    (($(grep -c heard "$work/run.out") == 2)) || fail "not both workers heard SIG${signal%:*}"
    expect_nothing_left
done
run 20 --standalone bash -c 'trap "exit 0" USR1; kill -USR1 $PPID; while :; do sleep 0.05; done'
expect_code 0

say "SIGTERM works although the caller has it blocked or ignored; the worker gets it as usual"
for way in block ignore; do
    forget job
    DDPRUN_TEST_MARK=$mark env --$way-signal=TERM "$ddprun" --standalone bash -c \
        'trap "echo heard; exit 0" TERM; touch "$0/$1.up"; while :; do sleep 0.05; done' "$work" $way \
        >"$work/job.out" 2>"$work/job.err" </dev/null &
    pid[job]=$!
    wait_until 10 test -e "$work/$way.up" || fail "the worker does not run"
    kill -TERM "${pid[job]}"
    join job 20
    expect_code 143
    expect_in "$work/job.out" heard
    expect_nothing_left
done
