#!/usr/bin/env bash
# The main job on a real Slurm cluster of four hosts: plain srun, a crash on the third node, the same in a batch script,
# the proof by MUNGE, a dry run, exit codes, and scancel.
source "$(dirname "${BASH_SOURCE[0]}")/slurm_common.sh"
need_built ddprun train

start_lab 4
cd "$work" # the ledger's folder is made in the working directory
# A munge that does not run.
mkdir "$work/no-munge"
printf '#!/bin/sh\nexit 6\n' | tee "$work/no-munge/munge" >"$work/no-munge/unmunge"
chmod +x "$work"/no-munge/*

job=("$ddprun" --nproc-per-node=2 "$train" --steps 40 --snapshot-every 10)
# Two workers on each node: rank 4 is the first worker of the third node.
crash=(--crash-at-step 25 --crash-rank 4)

say "srun ddprun on four nodes"
lab 60 srun -N4 "${job[@]}" --snapshot-dir "$work/calm"
expect_code 0
# The checksum of an undisturbed run. Each run with a crash must end with the same.
calm=$(checksum_of "$work/run.out" "$work/run.err")
[[ -n $calm ]] || fail "no checksum was printed"
expect_nothing_left

say "the nodes prove by MUNGE that they belong to one user, without any option"
rm -rf "$work/.ddprun"
lab 60 srun -N4 "$ddprun" --verbose --identity=require true
expect_code 0
expect_in "$work/run.err" 'nodes prove with MUNGE'
[[ -z $(find "$work/.ddprun" -name 'secret*') ]] || fail "a secret lies in the ledger's folder"

say "if munged does not run, the secret is in the ledger's folder"
lab 60 srun -N4 env PATH="$work/no-munge:$PATH" "$ddprun" --verbose --identity=require true
expect_code 0
expect_in "$work/run.err" "nodes prove with a file in the ledger's folder"

say "the third node's first worker crashes, and all eight restart"
lab 60 srun -N4 "${job[@]}" --snapshot-dir "$work/crash" "${crash[@]}"
expect_code 0
[[ $(checksum_of "$work/run.out" "$work/run.err") == "$calm" ]] || fail "the checksum is not $calm"
expect_nothing_left

say "the same inside a batch script"
{
    echo '#!/bin/bash'
    printf 'srun'
    printf ' %q' "${job[@]}" --snapshot-dir "$work/batch" "${crash[@]}"
    echo
} >"$work/job.sbatch"
lab_batch 60 -N4 -o "$work/batch.out" -e "$work/batch.err" "$work/job.sbatch"
expect_code 0
[[ $(checksum_of "$work/batch.out" "$work/batch.err") == "$calm" ]] || fail "the checksum is not $calm"
expect_nothing_left

say "a dry run prints once which ranks each node will have"
need_program jq
lab 60 srun -N4 "$ddprun" --dry-run=json --nproc-per-node=2 true
expect_code 0
jq -r '.nodes.list[] | "\(.first_rank.value) \(.name)", "\(.first_rank.value + 1) \(.name)"' "$work/run.out" >"$work/said" ||
    fail "not one JSON"
# A real run prints what the dry run has announced.
lab 60 srun -N4 "$ddprun" --nproc-per-node=2 --no-label bash -c 'echo "$RANK $SLURMD_NODENAME"'
expect_code 0
[[ -s $work/said && $(<"$work/said") == "$(sort -n "$work/run.out")" ]] || fail "said: $(<"$work/said")"

say "a dry run in a batch script shows the step that srun would start"
printf '#!/bin/bash\n%q --dry-run --nproc-per-node=2 true\n' "$ddprun" >"$work/dry.sbatch"
lab_batch 60 -N4 -o "$work/batch.out" -e "$work/batch.err" "$work/dry.sbatch"
expect_code 0
expect_in "$work/batch.out" '^srun ddprun would start 8 workers on 4 nodes'

say "the job has the exit code of the failed worker"
lab 60 srun -N4 "$ddprun" --nproc-per-node=2 --max-restarts=0 bash -c '((RANK == 5)) && exit 7; sleep 310'
expect_code 7
expect_in "$work/run.err" 'rank 5'
expect_nothing_left 5
echo "srun $(printf '%q ' "$ddprun") --nproc-per-node=1 --max-restarts=0 bash -c 'exit 7'" |
    sed '1i #!/bin/bash' >"$work/fails.sbatch"
lab_batch 60 -N4 -o "$work/batch.out" -e "$work/batch.err" "$work/fails.sbatch"
expect_code 7

say "a worker sees the variables that srun would set if it were a task, with any --mpi"
show='env | sort >"$0.$SLURM_PROCID"'
# The variables of Slurm that say where a task is.
names='PROCID|LOCALID|NODEID|NTASKS|NPROCS|STEP_NUM_TASKS|NNODES|STEP_NUM_NODES|NTASKS_PER_NODE|TASKS_PER_NODE'
places="^SLURM_($names|STEP_TASKS_PER_NODE|GTIDS|CPUS_PER_TASK|STEP_NODELIST)="
# Four tasks of srun, then four workers of ddprun: rank by rank the variables must be equal.
lab 60 srun -N2 --ntasks-per-node=2 -c2 --mpi=pmi2 bash -c "$show" "$work/task"
expect_code 0
lab 60 srun -N2 --ntasks-per-node=1 -c4 --mpi=pmi2 "$ddprun" --nproc-per-node=2 bash -c "$show" "$work/worker"
expect_code 0
for rank in 0 1 2 3; do
    has "$work/task.$rank" '^PMI_RANK=' || fail "srun sets no PMI_RANK: nothing to remove"
    (($(grep -cE "$places" "$work/task.$rank") == 14)) || fail "not all places: $(grep -E "$places" "$work/task.$rank")"
    diff <(grep -E "$places" "$work/task.$rank") <(grep -E "$places" "$work/worker.$rank") >&2 || fail "rank $rank is not its task"
    expect_not_in "$work/worker.$rank" '^(PMI|SLURM_STEP_ID|SLURM_SRUN_COMM)'
    has "$work/worker.$rank" "^RANK=$rank\$" || fail "SLURM_PROCID $rank is not its rank"
done
lab 60 srun -N2 --ntasks-per-node=1 --mpi=pmi2 "$ddprun" --nproc-per-node=2 --slurm-env=keep bash -c 'env >"$0.$RANK"' "$work/kept"
expect_in "$work/kept.3" '^SLURM_PROCID=1$'
expect_in "$work/kept.3" '^PMI_RANK=1$'

say "scancel leaves no process"
printf '#!/bin/bash\nsrun %q --nproc-per-node=2 bash -c "(setsid sleep 311 &) ; exec sleep 311"\n' "$ddprun" >"$work/long.sbatch"
lab 20 sbatch --parsable -N4 -o "$work/batch.out" -e "$work/batch.err" "$work/long.sbatch"
expect_code 0
id=$(<"$work/run.out")
# Eight workers, each with a child in a session of its own.
wait_until 20 count_is "sleep 311" 16 || fail "the workers do not run"
"$slurmlab" run scancel "$id"
expect_nothing_left 40
