#!/usr/bin/env bash
# The time limit of a step (srun --time), on a real Slurm cluster of two hosts.
source "$(dirname "${BASH_SOURCE[0]}")/slurm_common.sh"
need_built ddprun

start_lab 2
cd "$work" # the ledger's folder is made in the working directory

# A worker: folder. It copies what it can read about a stop.
# shellcheck disable=SC2016
worker='trap : USR1; trap "cp \"\$DDPRUN_STOP_FILE\" $0/told; exit 0" TERM; echo >>$0/run; while :; do sleep 0.1; done'

# Submits a batch script from standard input: name, options of sbatch… Sets job, and at, its folder. In the script $run is
# ddprun's command line up to its options, and $does the program.
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
expect_requeued() { wait_until "${2:-20}" is_requeued "$1" || fail "$1 is not requeued: $(login scontrol show job -o "$1")"; }
told() { grep -qs "\"reason\":\"$1\"" "$at/told"; }

step_limit() {
    say "the limit of a step is seen in advance, and the job is requeued"
    submit step -N2 --ntasks-per-node=1 --time=30 <<'JOB'
srun --time=1 "$run" --nproc-per-node=1 --lease=2 --stop-before=45 --no-python "$does"
echo "code $?" >>"$does.code"
JOB
    expect_run
    expect_requeued "$job" 50
    told time_limit || fail "told: $(cat "$at/told")"
    expect_in "$at.err" "the time limit is 4.* s away"
    expect_in "$at.err" "job $job is requeued"
    login scancel "$job"
}
step_limit
wait_until 30 none_queued || fail "left: $(login squeue)"
