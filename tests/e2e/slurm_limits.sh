#!/usr/bin/env bash
# Time limits and requeues that are not those of a whole job with srun, on a real Slurm cluster of two hosts: the limit
# of a step (srun --time), and a batch script that starts ddprun by itself.
source "$(dirname "${BASH_SOURCE[0]}")/slurm_common.sh"
need_built ddprun

start_lab 2
cd "$work" # the ledger's folder is made in the working directory

# A worker: folder. It copies what it can read about a stop.
# shellcheck disable=SC2016
worker='trap : USR1; trap "cp \"\$DDPRUN_STOP_FILE\" $0/told; exit 0" TERM; echo >>$0/run; while :; do sleep 0.1; done'

# Submits a batch script from standard input: name, options of sbatch… Sets job, and at, its folder. In the script $run
# is ddprun's command line up to its options, and $does the program.
submit() {
    at=$work/$1
    mkdir -p "$at"
    { echo '#!/bin/bash'; echo "run=$ddprun does=$at/does"; cat; } >"$at/job.sbatch"
    printf '#!/bin/bash\nexec bash -c %q %q\n' "$worker" "$at" >"$at/does"
    chmod +x "$at/does"
    job=$(login sbatch --parsable --requeue --open-mode=append -o "$at.out" -e "$at.err" "${@:2}" "$at/job.sbatch")
}
runs() { [[ -e $at/run ]]; }
expect_run() { wait_until 30 runs || fail "job $job does not run: $(login squeue)"; }
restarts() { login scontrol show job -o "$1" | grep -o 'Restarts=[0-9]*' | cut -d= -f2; }
is_requeued() { [[ $(restarts "$1") == 1 ]]; }
expect_requeued() {
    wait_until "${2:-20}" is_requeued "$1" || fail "$1 is not requeued: $(login scontrol show job -o "$1")"
}
# Slurm counts the requeue a moment before ddprun has its answer.
expect_requeue_told() {
    wait_until 10 grep -qs "job $1 is requeued" "$at.err" || fail "no word of the requeue: $(cat "$at.err")"
}
told() { grep -qs "\"reason\":\"$1\"" "$at/told"; }

# Slurm's limits are whole minutes, so these two wait beside each other.
step_limit() {
    say "the limit of a step is seen in advance, and the job is requeued"
    submit step -N2 --ntasks-per-node=1 --time=30 <<'JOB'
srun --time=1 "$run" --nproc-per-node=1 --lease=2 --stop-before=45 --no-python "$does"
echo "code $?" >>"$does.code"
JOB
    expect_run
    expect_requeued "$job" 50
    told time_limit || fail "told: $(cat "$at/told")"
    expect_in "$at.err" "the step's time limit \(srun --time\) is .* away and comes before that of the job"
    expect_in "$at.err" "the time limit is 4.* s away"
    expect_requeue_told "$job"
    login scancel "$job"
}
script_limit() {
    say "a batch script without srun: the job's limit is seen in advance, in an array for this element only"
    submit script --array=0-1 -N1 --ntasks=2 --time=30 <<'JOB'
element=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID
[[ $SLURM_JOB_ID != "$SLURM_ARRAY_JOB_ID" ]] || scontrol update jobid="$element" timelimit=1
env -uSLURM_JOB_END_TIME "$run" --nproc-per-node=2 --lease=2 --stop-before=45 --requeue=auto --no-python "$does"
JOB
    expect_run
    expect_requeued "${job}_1" 50
    told time_limit || fail "told: $(cat "$at/told")"
    expect_requeue_told "${job}_1"
    [[ $(restarts "${job}_0") == 0 ]] || fail "the brother was requeued, too"
    login scancel "$job"
}
by_signal() {
    say "a batch script without srun: a signal to the script"
    submit signal -N1 --ntasks=1 --time=30 <<'JOB'
exec "$run" --nproc-per-node=1 --requeue-signal=USR1 --no-python "$does"
JOB
    expect_run
    login scancel --batch --signal=USR1 "$job"
    expect_requeued "$job"
    told named_signal || fail "told: $(cat "$at/told")"
    expect_requeue_told "$job"
    expect_not_in "$at.err" 'requeue nothing here'
    login scancel "$job"
}
left_alone() {
    say "without these options the job is left alone, and in salloc a warning says that nothing is requeued"
    submit alone -N1 --ntasks=1 --time=30 <<'JOB'
exec "$run" --nproc-per-node=1 --signals-to-handle=SIGUSR1 --stop-signal=TERM --no-python "$does"
JOB
    expect_run
    login scancel --batch --signal=USR1 "$job"
    ended() { [[ $(login scontrol show job -o "$job") =~ JobState=(FAILED|COMPLETED) ]]; }
    wait_until 20 ended || fail "job $job does not end"
    is_requeued "$job" && fail "it was requeued"
    login salloc -N1 -n1 "$ddprun" --standalone --nproc-per-node=1 --requeue=always --no-python true \
        >"$work/salloc.out" 2>"$work/salloc.err" || fail "salloc"
    expect_in "$work/salloc.err" 'requeue nothing here'
}
side_by_side step_limit script_limit by_signal left_alone
wait_until 30 none_queued || fail "left: $(login squeue)"
