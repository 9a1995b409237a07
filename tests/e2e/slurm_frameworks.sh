#!/usr/bin/env bash
# Save before the end, requeue, resume: five programs that know nothing of Slurm (Accelerate's loop asks the module
# `ddprun`) on two nodes of a real cluster, each stopped by its time limit at random moments, also while it still
# imports. Each resumes where it was: at most one step is lost, and no rank prints a traceback.
#
#   slurm_frameworks.sh [ROUNDS [PROGRAM...]]       20 rounds of all programs
source "$(dirname "${BASH_SOURCE[0]}")/slurm_common.sh"
need_built ddprun
python=$root/build/programs-venv/bin/python
[[ -x $python ]] || skip "no $python; tests/run.sh --long makes it"
rounds=${1:-20}
programs=("${@:2}")
((${#programs[@]} > 0)) || programs=(plain lightning transformers accelerate ignite)
export PYTHONWARNINGS=ignore TRANSFORMERS_VERBOSITY=error HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 CUDA_VISIBLE_DEVICES=''
export PYTHONDONTWRITEBYTECODE=1
start_lab 2
mkdir "$work/module"
cp -r "$root/packaging/python/ddprun" "$work/module/ddprun"

shown() { login scontrol show job -o "$job"; }
is_in() { [[ $(shown 2>/dev/null) =~ JobState=($1)\  ]]; }
# Slurm makes a requeued job wait for two minutes after a short life. This starts it earlier, but not within one second
# of its end: slurmd would take its credential for the one that was revoked.
again() {
    [[ $(shown) == *Restarts=1* ]] || return 1
    ! is_in RUNNING || return 0
    is_in PENDING || return 1 # it is still COMPLETING
    gone_at=${gone_at:-$EPOCHSECONDS}
    ((EPOCHSECONDS <= gone_at + 1)) || login scontrol update jobid="$job" starttime=now 2>/dev/null || true
    return 1
}
# The steps from which the ranks of the newest life train.
begins() { grep -oP 'trains from step \K[0-9]+' "$at/out.$1" 2>/dev/null; }
both_train() { [[ $(grep -o 'has done 5 steps' "$at/out.$1" 2>/dev/null | wc -l) == 2 ]]; }

# One round: program, number. The stop comes some seconds after the start: the program takes about ten to import.
round() {
    local program=$1 left=$((34 + RANDOM % 20)) option=--framework-stop=auto begun=0 from
    at=$work/$program.$2
    mkdir "$at"
    [[ $program != accelerate ]] || option=--framework-stop=off
    cat >"$at/job.sbatch" <<S
#!/bin/bash
[[ -n \$SLURM_RESTART_COUNT ]] || end=SLURM_JOB_END_TIME=\$((\$(date +%s) + $left))
export STEPS_FOLDER=$at PYTHONPATH=$work/module
life=\${SLURM_RESTART_COUNT:-0}
exec srun -o "$at/out.\$life" -e "$at/err.\$life" env \$end $ddprun --nproc-per-node=1 --no-label --stop-before=25 \\
    $option --python "$python" $e2e/frameworks/${program}_script.py 100000
S
    job=$(cd "$at" && login sbatch --parsable --requeue -N2 --ntasks-per-node=1 --time=60 -D "$at" -o "$at/batch" \
        "$at/job.sbatch")
    gone_at='' && wait_until 120 again || { echo "  $program: not requeued: $(shown)"; return 1; }
    [[ ! -e $at/begun.0 ]] || begun=$(sort -n "$at"/begun.* | tail -n 1)
    wait_until 120 both_train 1 || { echo "  $program: the next life does not train"; return 1; }
    from=$(begins 1 | sort -u)
    login scancel "$job"
    wait_until 60 none_queued || { echo "  $program: scancel does not end it"; return 1; }
    if grep -qE 'Traceback|killed by signal' "$at/err.0" "$at/out.0"; then
        echo "  $program: a traceback"; return 1
    fi
    echo "  $program: stopped $((left - 25)) s after its start, in step $begun; goes on after step ${from//$'\n'/, }"
    ((${from//$'\n'/+100000} >= begun - 1)) || return 1
}
good=0 all=0
for ((number = 1; number <= rounds; ++number)); do
    say "round $number of $rounds"
    for program in "${programs[@]}"; do
        if round "$program" "$number"; then
            good=$((good + 1))
            rm -rf "$at"
        else
            login scancel "$job" || true
            tail -n 15 "$at"/{out,err}.? "$at/batch" 2>/dev/null || true
            wait_until 60 none_queued || fail "the job does not end"
        fi
        all=$((all + 1))
    done
done
say "$good of $all go on where they were"
((good == all)) || fail "$((all - good)) of $all have lost steps or failed"
expect_nothing_left 20
