#!/usr/bin/env bash
# The agreed stop on a real Slurm cluster of four hosts: a signal on one node, the time limit, preemption, scancel; what
# the workers can read about it, and what continues after a requeue. The worker counts, writes its count when it is
# asked to stop, and continues from there.
#
#   slurm_stop.sh linuxproc|cgroup
#
# DDPRUN_LONG=1 tells all stories with both (a normal run with cgroup only those that may differ), waits for Slurm's own
# clocks, too (a time limit takes minutes), and repeats the race of signals 50 times.
source "$(dirname "${BASH_SOURCE[0]}")/slurm_common.sh"
need_built ddprun
need_program python3
tracker=${1:-linuxproc}
[[ $tracker == linuxproc || -w /sys/fs/cgroup/freezer ]] ||
    skip "no freezer of cgroup v1, which proctrack/cgroup of this Slurm needs"
long=${DDPRUN_LONG:-0}

# A preemption takes at least KillWait and MessageTimeout, so the latter is short here.
# Slurm's delay of a requeued job is 31 s.
export SLURMLAB_PROCTRACK=$tracker SLURMLAB_PREEMPT=REQUEUE SLURMLAB_GRACE=5 SLURMLAB_MESSAGE_TIMEOUT=5
export SLURMLAB_CRED_EXPIRE=30
start_lab 4
cd "$work" # the ledger's folder is made in the working directory

# The worker counts up to a number: folder, number, seconds that its last snapshot takes (below 0: it dies of the
# signal). In the folder it writes `count`, the newest count of rank 0; `told.GENERATION.RANK`, when it was asked to
# stop and what it read; `run.GENERATION.RANK`, where it began.
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

# Submits a job: name, seconds left before the time limit that ddprun sees at the first start (0: those of Slurm; -:
# none), number and seconds for the worker, options of ddprun… Sets job, its id, and at, its folder. The commands in
# $before come before srun.
submit() {
    local name=$1 left=$2 count=$3 saving=$4; shift 4
    at=$work/$name
    mkdir -p "$at"
    {
        echo '#!/bin/bash'
        # Set within the task, since srun sets it, too, from 23.02 on.
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
    job=$(login sbatch --parsable --requeue --open-mode=append -N4 --time="${limit:-60}" \
        -o "$at.out" -e "$at.err" "$at/job.sbatch")
}
# Whether all eight workers of a generation have begun: generation.
runs() { [[ $(find "$at" -name "run.$1.*" | wc -l) == 8 ]]; }
expect_run() { wait_until 60 runs "$1" || fail "generation $1 of job $job does not run"; }
# Whether all eight workers of a generation were asked to stop: generation.
all_told() { [[ $(find "$at" -name "told.$1.*" | wc -l) == 8 ]]; }
# Whether the job is in one of these states: states, with | between them.
is_in() { [[ $(login scontrol show job -o "$job" 2>/dev/null) =~ JobState=($1)\  ]]; }
expect_state() { wait_until "${2:-20}" is_in "$1" || fail "job $job is not $1: $(login scontrol show job -o "$job")"; }
restarts() { login scontrol show job -o "$job" | grep -o 'Restarts=[0-9]*' | cut -d= -f2; }
# Whether the requeued job runs again. Slurm makes it wait for two minutes after it has left its nodes; this starts it
# earlier, but not within one second of its end: slurmd would take its credential for the one that was revoked.
again() {
    local shown
    shown=$(login scontrol show job -o "$job")
    [[ $shown == *Restarts=1* && $shown == *JobState=RUNNING* ]] && return
    [[ $shown == *JobState=PENDING* ]] || return 1 # it is still COMPLETING
    gone_at=${gone_at:-$EPOCHSECONDS}
    ((EPOCHSECONDS <= gone_at + 1)) || login scontrol update jobid="$job" starttime=now 2>/dev/null || true
    return 1
}
hurry() {
    gone_at='' && wait_until "${1:-60}" again ||
        fail "job $job does not run again: $(login scontrol show job -o "$job")"
}
# Process id of a worker on a host: host.
# Not the fork server, which has a channel to ddprun in descriptor 10 and may have the lower number.
worker_on() {
    local id
    for id in $(pgrep -P "$(pgrep -P "$(ddprun_on "$1")" -x job-keeper)"); do
        [[ -e /proc/$id/fd/10 ]] || { echo "$id"; return; }
    done
}
# A field of what a worker has read about the stop: file, name.
hint() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["hint"].get(sys.argv[2]))' "$1" "$2"; }
done_at() { [[ $(tail -n 1 "$at.out" 2>/dev/null) == "code $1" ]]; }
# Waits until srun has ended, and nothing is left: exit code.
expect_done() {
    wait_until 40 done_at "$1" || fail "job $job does not end with $1: $(tail -n 3 "$at.out")"
    expect_nothing_left 10
}

one_signal() {
    say "a signal on one node reaches the workers of all four, after the file that says why"
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
last = max(t["at"] for t in told) - float(sys.argv[2])
print("  from the signal at n3 to the last of %d workers: %.1f ms" % (len(told), 1000 * last))
PYTHON
    expect_done 143
    expect_state "COMPLETED|FAILED"
    [[ $(restarts) == 0 ]] || fail "it was requeued"
}

end_is_asked_for() {
    say "if no variable gives the time limit, the leader asks Slurm"
    submit asks - 100 0 --verbose --lease=2
    expect_done 0
    expect_in "$at.err" 'squeue reports .* until the time limit'
}

end_is_seen() {
    say "before the time limit: a last snapshot, a requeue, and the next generation continues the count"
    submit limit 50 1000000 0.5 --stop-before=30 # time to start while the workers of other stories start, too
    expect_run 0
    hurry
    expect_in "$at.err" 'the time limit is .* away'
    expect_in "$at.err" "job $job is requeued"
    [[ $(grep -c 'is requeued' "$at.err") == 1 ]] || fail "requeued more than once"
    [[ $(hint "$at/told.0.7" reason) == time_limit && $(hint "$at/told.0.7" requeue) == True ]] ||
        fail "told: $(<"$at/told.0.7")"
    expect_run 1
    (($(<"$at/run.1.0") == $(<"$at/count") && $(<"$at/count") > 0)) ||
        fail "it begins at $(<"$at/run.1.0") instead of $(<"$at/count")"
    [[ $(restarts) == 1 ]] || fail "$(restarts) restarts"
    expect_in "$at.err" 'continues after entry'

    say "after scancel nothing starts"
    login scancel "$job"
    expect_state CANCELLED
    expect_nothing_left 20
    [[ $(restarts) == 1 ]] || fail "it was requeued"
    is_in CANCELLED || fail "it is $(login scontrol show job -o "$job")"
}

named_signal() {
    say "a signal of --requeue-signal does the same, and the exit code is 75"
    submit named 0 1000000 0.2 --requeue-signal=USR1
    expect_run 0
    login scancel -s USR1 "$job"
    hurry
    expect_in "$at.err" 'SIGUSR1 \(--requeue-signal\)'
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

is_pending() { is_in PENDING && [[ $(restarts) == "$1" ]]; }
begins_soon() {
    say "after a life longer than Slurm's delay the next one begins within seconds, and never beside it"
    submit soon 0 1000000 0.2 --requeue-signal=USR1 --requeue-begin=4
    expect_run 0
    local begun=$SECONDS lived
    lived() { ((SECONDS > begun + 32)); }
    wait_until 60 lived
    login scancel -s USR1 "$job"
    expect_run 1
    expect_in "$at.err" "job $job can start again in 4 s \(--requeue-begin\), not in 31 s"
    python3 - "$at" <<'PYTHON'
import glob, json, os, sys
ended = max(json.load(open(name))["at"] for name in glob.glob(sys.argv[1] + "/told.0.*"))
begin = min(os.stat(name).st_mtime for name in glob.glob(sys.argv[1] + "/run.1.*"))
print("  from the last worker's stop to the first of the next life: %.1f s" % (begin - ended))
assert 0.2 < begin - ended < 25, "the delay of Slurm is 31 s"
PYTHON

    say "after a short life Slurm's delay stays; scancel in the gap cancels the job"
    login scancel -s USR1 "$job"
    wait_until 20 is_pending 2 || fail "job $job is not requeued: $(login scontrol show job -o "$job")"
    expect_in "$at.err" "when Slurm's own delay of 31 s is over: this run lasted only [0-9]* s"
    login scancel "$job"
    expect_state CANCELLED
    expect_nothing_left 20
    [[ ! -e $at/run.2.0 ]] || fail "a third life has begun"
}

# Programs that handle SIGTERM only, as most do.
only_sigterm() { sed '/^signal.signal(signal.SIGUSR1/d' "$worker" >"$work/bare.py"; }

alone_named() {
    say "a signal for the batch script, which passes it on to ddprun alone: all workers save"
    only_sigterm
    at=$work/alone
    mkdir -p "$at"
    # The script of the page, with the hosts of this cluster and the worker of this test.
    sed -n '/title="warned.sbatch"/,/^```$/p' "$root/docs/pages/how-to/preemption.md" |
        sed -e '/^```/d' -e 's/ --gpus-per-node=4//' -e 's/--nodes=2/--nodes=4/' \
            -e "s,ddprun --req,$ddprun --req,; s,train.py --epochs 100,--nproc-per-node=2 --no-python python3 $work/bare.py $at 1000000 0.2," \
            >"$at/job.sbatch"
    job=$(login sbatch --parsable -o "$at.out" -e "$at.err" "$at/job.sbatch")
    expect_run 0
    login scancel --batch --signal=USR1 "$job"
    wait_until 20 all_told 0 || fail "not all workers were told"
    hurry
    expect_in "$at.err" 'SIGUSR1 \(--requeue-signal\)'
    expect_not_in "$at.err" 'before they could save'
    expect_run 1
    login scancel "$job"
    expect_state CANCELLED
    expect_nothing_left 20
}

signalled_beside() {
    say "workers that Slurm signals beside ddprun, and that die of it, are counted"
    only_sigterm
    worker=$work/bare.py submit beside 0 1000000 1 --requeue-signal=USR1 --requeue=never
    expect_run 0
    login scancel -s USR1 "$job"
    expect_done 75
    expect_in "$at.err" '[12] of 2 workers of this node died of SIGUSR1 before they could save: Slurm has sent'
}

cancelled_while_saving() {
    say "scancel while the last snapshot is being written cancels the requeue"
    # scancel ends the batch script at once, and srun with it; then nobody prints what ddprun says. This script ignores
    # it.
    before='trap : TERM' submit cancelled 0 1000000 3 --requeue-signal=USR1
    expect_run 0
    login scancel -s USR1 "$job"
    wait_until 10 all_told 0 || fail "not all workers were told"
    login scancel "$job"
    expect_state CANCELLED
    expect_nothing_left 20
    expect_in "$at.err" 'the job is not requeued'
    [[ $(restarts) == 0 ]] || fail "it was requeued"
}

preempted() {
    say "the template for preemptible jobs: Slurm preempts and requeues it, and it continues"
    at=$work/preempted
    mkdir "$at"
    mkdir -p "$work/programs"
    ln -sf "$ddprun" "$work/programs/ddprun"
    # The template as it is, but with the hosts of this cluster and the worker of this test.
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
    # In turn: Slurm signals all processes (with linuxproc at once), or one worker gets a signal long before any ddprun.
    local round rounds=4 first then
    ((long == 0)) || rounds=50
    say "workers that Slurm signals before ddprun have not failed ($rounds rounds)"
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
    say "if no stop follows, such a death is a failure, one second later"
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
    expect_in "$at.err" 'the time limit is .* away'
    expect_run 1
    (($(<"$at/run.1.0") == $(<"$at/count"))) || fail "it begins at $(<"$at/run.1.0") instead of $(<"$at/count")"
    login scancel "$job"
    expect_state CANCELLED
}

one_signal # alone, because it prints a time
stories=(cancelled_while_saving signalled_first dies_alone)
[[ $tracker == cgroup ]] || stories+=(alone_named signalled_beside)
((long == 0)) && [[ $tracker == cgroup ]] || stories+=(end_is_asked_for end_is_seen named_signal)
((long == 0)) || stories+=(real_limit)
side_by_side "${stories[@]}"
# Alone, because it lives longer than others can wait for whole nodes.
[[ $tracker == cgroup ]] || begins_soon
((long == 0)) && [[ $tracker == cgroup ]] || preempted # alone, because it takes the nodes from all other jobs
