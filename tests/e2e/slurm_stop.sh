#!/usr/bin/env bash
# One agreed stop on a real Slurm cluster of four hosts: a signal at one node, the end of the job's time, preemption, scancel;
# what workers read of it, and what goes on from the queue. The worker counts, writes its count when it is told to stop, and
# goes on from there.
#
#   slurm_stop.sh linuxproc|cgroup
#
# DDPRUN_LONG=1 plays all with both (a normal run with cgroup only what may differ), waits for Slurm's own clocks too (a
# time limit takes minutes), and plays the race of signals 50 times.
source "$(dirname "${BASH_SOURCE[0]}")/slurm_common.sh"
need_built ddprun
need_program python3
tracker=${1:-linuxproc}
[[ $tracker == linuxproc || -w /sys/fs/cgroup/freezer ]] || skip "no freezer of cgroup v1, which proctrack/cgroup of this Slurm needs"
long=${DDPRUN_LONG:-0}

# From the beginning of a preemption to its end Slurm waits at least for KillWait and MessageTimeout.
export SLURMLAB_PROCTRACK=$tracker SLURMLAB_PREEMPT=REQUEUE SLURMLAB_GRACE=5 SLURMLAB_MESSAGE_TIMEOUT=5
start_lab 4
cd "$work" # the ledger's folder is made in the working directory

# Counts to its argument, in the folder that it is given: `count`, the newest of rank 0; `told.RANK`, when and what it was
# told; `run.GENERATION.RANK`, where it began. The last argument is how long its last snapshot takes; below 0: it dies of
# the signal.
worker=$work/worker.py
cat >"$worker" <<'PYTHON'
import json, os, signal, sys, time
folder, until, saving = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
env, rank = os.environ, os.environ["RANK"]
place = f"{env['TORCHELASTIC_RESTART_COUNT']}.{rank}"
count = int(open(f"{folder}/count").read() or 0) if os.path.exists(f"{folder}/count") else 0
def write(name, text):
    with open(f"{folder}/{name}.part", "w") as file: file.write(text)
    os.rename(f"{folder}/{name}.part", f"{folder}/{name}")
def told(number, frame):
    now = time.time()
    hint = open(env["DDPRUN_STOP_FILE"]).read() if os.path.exists(env["DDPRUN_STOP_FILE"]) else "{}"
    write(f"told.{place}", json.dumps({"at": now, "signal": number, "hint": json.loads(hint)}))
    time.sleep(saving)
    if rank == "0": write("count", str(count))
    sys.exit(0)
if saving >= 0: signal.signal(signal.SIGTERM, told)
signal.signal(signal.SIGUSR1, lambda *_: None)
write(f"run.{place}", str(count))
while count < until:
    time.sleep(0.05)
    count += 1
    os.write(int(env["DDPRUN_PROGRESS_FD"]), b"step=%d\n" % count)
PYTHON

# Submits: name, seconds left of its time as ddprun is told at the first start (0: as Slurm tells; -: not told), worker's count
# and seconds to save, options of ddprun… Sets job and at (its folder). What $before has stands before the srun.
submit() {
    local name=$1 left=$2 count=$3 saving=$4; shift 4
    at=$work/$name
    mkdir -p "$at"
    {
        echo '#!/bin/bash'
        # In the task: since 23.02 srun tells it the end itself.
        case $left in
            0) ;;
            -) echo 'end=-uSLURM_JOB_END_TIME' ;;
            *) echo "[[ -n \$SLURM_RESTART_COUNT ]] || end=SLURM_JOB_END_TIME=\$((\$(date +%s) + $left))" ;;
        esac
        echo "${before:-}"
        printf 'srun --no-kill env $end'
        printf ' %q' "$ddprun" --nproc-per-node=2 "$@" --no-python python3 "$worker" "$at" "$count" "$saving"
        echo "; echo \"code \$?\""
    } >"$at/job.sbatch"
    job=$(login sbatch --parsable --requeue --open-mode=append -N4 --time="${limit:-60}" -o "$at.out" -e "$at.err" "$at/job.sbatch")
}
runs() { [[ $(find "$at" -name "run.$1.*" | wc -l) == 8 ]]; }
expect_run() { wait_until 30 runs "$1" || fail "generation $1 of job $job does not run"; }
all_told() { [[ $(find "$at" -name "told.$1.*" | wc -l) == 8 ]]; }
is_in() { [[ $(login scontrol show job -o "$job" 2>/dev/null) =~ JobState=($1)\  ]]; }
expect_state() { wait_until "${2:-20}" is_in "$1" || fail "job $job is not $1: $(login scontrol show job -o "$job")"; }
restarts() { login scontrol show job -o "$job" | grep -o 'Restarts=[0-9]*' | cut -d= -f2; }
# Slurm lets a requeued job wait for two minutes, counted from when it is gone from its nodes; nobody waits for that here.
# One that is started in the second in which it was killed fails: slurmd takes its credential for the one that was revoked.
again() {
    local shown
    shown=$(login scontrol show job -o "$job")
    [[ $shown == *Restarts=1* && $shown == *JobState=RUNNING* ]] && return
    [[ $shown == *JobState=PENDING* ]] || return 1 # no more COMPLETING
    gone_at=${gone_at:-$EPOCHSECONDS}
    ((EPOCHSECONDS <= gone_at + 1)) || login scontrol update jobid="$job" starttime=now 2>/dev/null || true
    return 1
}
hurry() { gone_at='' && wait_until "${1:-60}" again || fail "job $job does not run again: $(login scontrol show job -o "$job")"; }
worker_on() { pgrep -P "$(pgrep -P "$(ddprun_on "$1")" -x ddprun-keeper)" | head -n 1; }
hint() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["hint"].get(sys.argv[2]))' "$1" "$2"; }
done_at() { [[ $(tail -n 1 "$at.out" 2>/dev/null) == "code $1" ]]; }
expect_done() { # code
    wait_until 40 done_at "$1" || fail "job $job does not end with $1: $(tail -n 3 "$at.out")"
    expect_nothing_left 10
}

one_signal() {
    say "a signal at one node reaches the workers of all four, after the file that says why"
    submit one 0 100000 0
    expect_run 0
    third=$(ddprun_on n3)
    sent=$EPOCHREALTIME
    kill -TERM "$third"
    wait_until 10 all_told 0 || fail "not all workers were told"
    python3 - "$at" "$sent" <<'PYTHON'
import glob, json, sys
told = [json.load(open(name)) for name in glob.glob(sys.argv[1] + "/told.*")]
assert all(t["signal"] == 15 and t["hint"]["reason"] == "signal" and t["hint"]["requeue"] is False and
           0 < t["hint"]["seconds_left"] <= 25 for t in told), told
print("  from the signal at n3 to the last of %d workers: %.1f ms" % (len(told), 1000 * (max(t["at"] for t in told) - float(sys.argv[2]))))
PYTHON
    expect_done 143
    expect_state "COMPLETED|FAILED"
    [[ $(restarts) == 0 ]] || fail "it was requeued"
}

end_is_asked_for() {
    say "where no variable tells the end, the leader asks"
    submit asks - 100 0 --verbose --lease=2
    expect_done 0
    expect_in "$at.err" 'squeue: .* of the job.s time are left'
}

end_is_seen() {
    say "the end of its time seen coming: a last snapshot, the queue, and on with the next generation and the count"
    submit limit 50 1000000 0.5 --stop-before=30 # the other stories' workers start at the same time
    expect_run 0
    hurry
    expect_in "$at.err" 'the time limit is reached in'
    expect_in "$at.err" "job $job is requeued"
    [[ $(grep -c 'is requeued' "$at.err") == 1 ]] || fail "requeued more than once"
    [[ $(hint "$at/told.0.7" reason) == time_limit && $(hint "$at/told.0.7" requeue) == True ]] || fail "told: $(<"$at/told.0.7")"
    expect_run 1
    (($(<"$at/run.1.0") == $(<"$at/count") && $(<"$at/count") > 0)) || fail "it begins at $(<"$at/run.1.0") instead of $(<"$at/count")"
    [[ $(restarts) == 1 ]] || fail "$(restarts) restarts"
    expect_in "$at.err" 'goes on after entry'

    say "scancel: nothing starts"
    login scancel "$job"
    expect_state CANCELLED
    expect_nothing_left 20
    [[ $(restarts) == 1 ]] || fail "it was requeued"
    is_in CANCELLED || fail "it is $(login scontrol show job -o "$job")"
}

named_signal() {
    say "a signal that the user has named: the same, and its code is 75"
    submit named 0 1000000 0.2 --requeue-signal=USR1
    expect_run 0
    login scancel -s USR1 "$job"
    hurry
    expect_in "$at.err" 'SIGUSR1, --requeue-signal'
    expect_run 1
    login scancel "$job"
    expect_state CANCELLED
    expect_nothing_left 20
    submit stays 0 1000000 0 --requeue-signal=USR1 --requeue=never
    expect_run 0
    login scancel -s USR1 "$job"
    expect_done 75
    [[ $(restarts) == 0 ]] || fail "it was requeued with --requeue=never"
}

cancelled_while_saving() {
    say "scancel while the last snapshot is being written: the requeue is off"
    # scancel ends a batch script at once, and its srun with it: what ddprun says then has nobody to write it. This one stays.
    before='trap : TERM' submit cancelled 0 1000000 3 --requeue-signal=USR1
    expect_run 0
    login scancel -s USR1 "$job"
    wait_until 10 all_told 0 || fail "not all workers were told"
    login scancel "$job"
    expect_state CANCELLED
    expect_nothing_left 20
    expect_in "$at.err" 'it is not requeued'
    [[ $(restarts) == 0 ]] || fail "it was requeued"
}

preempted() {
    say "a preemption of the template for such jobs: Slurm requeues it, and it goes on"
    at=$work/preempted
    mkdir "$at"
    mkdir -p "$work/programs"
    ln -sf "$ddprun" "$work/programs/ddprun"
    sed -e '/gpus-per-node/d' -e 's/cpus-per-task=.*/cpus-per-task=8/' \
        -e "s,train.py.*,--nproc-per-node=2 --no-python python3 $worker $at 1000000 0.2," \
        "$root/slurm/preemptible.sbatch" >"$at/job.sbatch"
    job=$(login env PATH="$work/programs:$PATH" sbatch --parsable -o "$at.out" -e "$at.err" "$at/job.sbatch")
    expect_run 0
    login srun -p urgent -N4 true >"$work/urgent.out" 2>&1 || fail "the urgent job does not run"
    hurry
    expect_run 1
    (($(<"$at/run.1.0") == $(<"$at/count"))) || fail "it begins at $(<"$at/run.1.0") instead of $(<"$at/count")"
    login scancel "$job"
    expect_state CANCELLED
    expect_nothing_left 20
}

signalled_first() {
    # By Slurm itself, which with linuxproc signals all at once; and with one worker long before any ddprun.
    local round rounds=4 first then
    ((long == 0)) || rounds=50
    say "workers that Slurm signals first have not failed ($rounds rounds)"
    for ((round = 1; round <= rounds; ++round)); do
        submit "race$round" 0 1000000 -1
        expect_run 0
        if ((round % 2)); then
            login scancel -s TERM "$job"
        else
            first=$(worker_on n2) then=$(ddprun_on n4)
            kill -HUP "$first"
            kill -TERM "$then"
        fi
        expect_done 143
        expect_not_in "$at.err" 'was killed by signal'
        expect_not_in "$at.err" 'restart'
        rm -rf "$work/.ddprun"
    done
}

dies_alone() {
    say "without a stop such a death is a failure, a second later"
    submit dies 0 1000000 0
    expect_run 0
    kill -HUP "$(worker_on n2)"
    expect_run 1
    expect_in "$at.err" 'was killed by signal 1 '
    login scancel "$job"
    expect_state CANCELLED
    expect_nothing_left 20
}

real_limit() {
    say "Slurm's own time limit of two minutes"
    limit=2 submit real 0 1000000 1 --stop-before=40
    expect_run 0
    hurry 240
    expect_in "$at.err" 'the time limit is reached in'
    expect_run 1
    (($(<"$at/run.1.0") == $(<"$at/count"))) || fail "it begins at $(<"$at/run.1.0") instead of $(<"$at/count")"
    login scancel "$job"
    expect_state CANCELLED
}

one_signal # alone: its time is printed
stories=(cancelled_while_saving signalled_first dies_alone)
((long == 0)) && [[ $tracker == cgroup ]] || stories+=(end_is_asked_for end_is_seen named_signal)
((long == 0)) || stories+=(real_limit)
side_by_side "${stories[@]}"
((long == 0)) && [[ $tracker == cgroup ]] || preempted # by itself: it takes the nodes from all
