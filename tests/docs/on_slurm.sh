#!/usr/bin/env bash
# Runs each command of the documentation that is for Slurm, as it stands there, on the login node of a real cluster:
# page by page, each in an empty folder. One cluster of three hosts with four GPUs each for all pages. Stand-ins:
# apptainer, pyxis' options of srun, and the reader's own train.py. PAGES=PATTERN selects pages.
source "$(dirname "${BASH_SOURCE[0]}")/../e2e/slurm_common.sh"
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun ddpctl ddprun-rendezvous
unset PET_NO_LABEL
assemble
cp "$root/tests/support/apptainer" "$work/bin"
start_lab 3 4

# Whether all workers of the job have said so: "rank 0 of 4, attempt 0".
running() {
    local all world
    all=$(grep -ohsE 'rank [0-9]+ of [0-9]+, attempt 0' slurm-*.out) || return 1
    world=${all##* of }
    [[ $(wc -l <<<"$all") == "${world%%,*}" ]]
}
seen() { grep -qsE -- "$1" slurm-*.out; }
# All jobs that were submitted in this page's folder have ended with 0.
jobs_are_good() {
    local id code
    for id in $(find . -maxdepth 1 -name 'slurm-*.out' | sed 's/.*slurm-\([0-9]*\).*/\1/' | sort -u); do
        code=$("$slurmlab" run scontrol -o show job "$id" | sed -n 's/.* ExitCode=\([0-9:]*\) .*/\1/p' | sort -u)
        [[ $code == 0:0 ]] || fail "job $id ended with $code: $(tail -n 20 slurm-"$id"*.out)"
    done
}

run_block() { # file, output
    DDPRUN_TEST_MARK=$mark timeout --kill-after=5 100 "$slurmlab" run bash -euo pipefail "$1" >"$2" 2>&1 </dev/null
}

# Runs a block while a job of its page trains: file, output, script, what to wait for in the job's output.
beside_a_job() {
    DOCS_EPOCH=1 login sbatch "$3" >"$work/sbatch.out" 2>&1 || fail "$3 is not submitted"
    wait_until 60 running || fail "$3 does not run: $(tail -n 20 slurm-*.out)"
    run_block "$1" "$2" || fail "the command failed"
    [[ -z $4 ]] || wait_until 60 seen "$4" || fail "not seen in the job: $4: $(tail -n 20 slurm-*.out)"
    login scancel --user="$(id -un)" >/dev/null 2>&1
}

play_page() { # path below the pages
    local folder=$work/run line says block output runs
    rm -rf "$folder"
    prepare "$1" slurm "$folder"
    cd "$folder"
    while IFS=$'\t' read -r line says; do
        block=.blocks/$line.sh output=$work/block.out runs=$(value_of runs "$says")
        say "$1:$line: $(head -n 1 "$block")"
        if [[ -n $runs ]]; then
            rm -f slurm-*.out
            beside_a_job "$block" "$output" "$runs" "$(value_of until "$says")"
        else
            run_block "$block" "$output" || fail "the command failed"
        fi
        wait_until 90 none_queued || fail "jobs are left: $(login squeue)"
        cat slurm-*.out >>"$output" 2>/dev/null || true
        expect_seen "$says" "$output"
        [[ -n $runs ]] || jobs_are_good
        rm -f slurm-*.out
        wait_until 20 idle || fail "the cluster is not idle"
    done <"$work/blocks"
    # A script that no command of its page submits is tried as it is, but for the size of these hosts.
    for block in *.sbatch; do
        [[ -e $block ]] && ! grep -rqsF -- "$block" .blocks "$work/blocks" || continue
        say "$1: $block"
        login sbatch --nodes=2 --cpus-per-task=4 "$block" >"$work/sbatch.out" 2>&1 || fail "$block is not submitted"
        wait_until 90 none_queued || fail "jobs are left: $(login squeue)"
        jobs_are_good
    done
}

export DOCS_EPOCH=0.02
for page in "${pages[@]}"; do play_page "$page"; done
expect_nothing_left 10
