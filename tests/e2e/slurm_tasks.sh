#!/usr/bin/env bash
# srun starts a task for each worker, and ddprun --task-per-worker makes one world of them, on a real Slurm cluster of
# three hosts with four GPUs each. Ranks in every distribution, a crash, lost agents, a lost host, the right device for
# each kind of GPU binding, and what is refused.
source "$(dirname "${BASH_SOURCE[0]}")/slurm_common.sh"
need_built ddprun train
need_program jq

start_lab 3 4
cd "$work" # the ledger's folder is made in the working directory

tasks=("$ddprun" --task-per-worker)
# The pid of the ddprun that srun started as this task: host, local id.
agent() {
    local id
    for id in $(marked); do
        tr '\0' '\n' <"/proc/$id/environ" 2>/dev/null | grep -qx "SLURMD_NODENAME=$1" || continue
        tr '\0' '\n' <"/proc/$id/environ" 2>/dev/null | grep -qx "SLURM_LOCALID=$2" || continue
        [[ $(ps -o comm= -p "$(ps -o ppid= -p "$id" | tr -d ' ')") != slurmstepd ]] || { echo "$id"; return; }
    done
    fail "no ddprun is task $2 of $1"
}

say "in every distribution a worker sees the variables of its task"
printf 'n3\nn3\nn1\n' >"$work/hostfile"
# The variables of Slurm that say where a task is.
places='^SLURM_(PROCID|LOCALID|NODEID|NTASKS|NPROCS|STEP_NUM_TASKS|NNODES|STEP_NUM_NODES|NTASKS_PER_NODE|TASKS_PER_NODE|STEP_TASKS_PER_NODE|GTIDS|CPUS_PER_TASK|STEP_NODELIST|JOB_NODELIST)='
show='env | sort >"$0.$SLURM_PROCID"'
# Each shape first with plain tasks, then with ddprun; task by task the variables must be equal.
for shape in "-N2 --ntasks-per-node=2 -c2" "-N2 -n5 -m cyclic" "-N2 -n5 -m plane=2" "-N3 -n3 -m arbitrary" "-N1 -n3"; do
    hostfile=()
    [[ $shape != *arbitrary* ]] || { hostfile=(env SLURM_HOSTFILE="$work/hostfile"); shape="-n3 -m arbitrary"; }
    rm -f "$work"/task.* "$work"/worker.*
    # shellcheck disable=SC2086
    lab 20 "${hostfile[@]}" srun $shape bash -c "$show" "$work/task"
    expect_code 0
    # shellcheck disable=SC2086
    lab 20 "${hostfile[@]}" srun $shape "${tasks[@]}" bash -c "$show" "$work/worker"
    expect_code 0
    for task in "$work"/task.*; do
        rank=${task##*.}
        diff <(grep -E "$places" "$task") <(grep -E "$places" "$work/worker.$rank") >&2 || fail "$shape: rank $rank is not its task"
        has "$work/worker.$rank" "^RANK=$rank\$" || fail "$shape: SLURM_PROCID $rank is not its rank"
        has "$work/worker.$rank" "^LOCAL_RANK=$(sed -n 's/^SLURM_LOCALID=//p' "$task")\$" || fail "$shape: SLURM_LOCALID is not its local rank"
        has "$work/worker.$rank" "^LOCAL_WORLD_SIZE=$(sed -n 's/^SLURM_GTIDS=//p' "$task" | tr ',' '\n' | wc -l)\$" || fail "$shape: not the tasks of its node"
        has "$work/worker.$rank" "^WORLD_SIZE=$(ls "$work"/task.* | wc -l)\$" || fail "$shape: not all tasks are its world"
        expect_not_in "$work/worker.$rank" '^SLURM_STEP_ID='
    done
done
expect_nothing_left

say "training with a crash: all tasks restart"
train_job=(srun -N2 --ntasks-per-node=2 "${tasks[@]}" "$train" --steps 40 --snapshot-every 10)
lab 30 "${train_job[@]}" --snapshot-dir "$work/calm"
expect_code 0
calm=$(checksum_of "$work/run.out" "$work/run.err")
[[ -n $calm ]] || fail "no checksum was printed"
lab 30 "${train_job[@]}" --snapshot-dir "$work/crash" --crash-at-step 25 --crash-rank 3
expect_code 0
[[ $(checksum_of "$work/run.out" "$work/run.err") == "$calm" ]] || fail "the checksum is not $calm"
expect_in "$work/run.err" 'rank 3 \(local 1 on n2\)'
expect_nothing_left

say "a host whose tasks fail twice is named once, without the task; one report for the job, one line for each other host"
lab 30 srun -N2 --ntasks-per-node=2 "${tasks[@]}" --max-restarts=2 bash -c \
    '((RANK == 2 + TORCHELASTIC_RESTART_COUNT % 2)) && exit $((7 + TORCHELASTIC_RESTART_COUNT)); exec sleep 312'
expect_code 9
expect_in "$work/run.err" 'sbatch --exclude=n2$'
expect_in "$work/run.err" '^  host      : n2$'
(($(grep -c 'first failure:' "$work/run.err") == 1)) || fail "not one line of the other host"
expect_nothing_left 5

say "the ddprun of the leading task is killed: the others continue under the next leader"
# Starts a command on the login node in the background: name, command…
lab_job() {
    local name=$1; shift
    : >"$work/$name.out"
    wait_until 20 idle || fail "the cluster is not idle"
    DDPRUN_TEST_MARK=$mark "$slurmlab" run env DDPRUN_TEST_MARK="$mark" "$@" >"$work/$name.out" 2>"$work/$name.err" </dev/null &
    pid[$name]=$!
}
# What a worker prints: generation, host, and its place in the world, on the host, among the nodes and for Slurm.
place='echo "g$TORCHELASTIC_RESTART_COUNT $SLURMD_NODENAME $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $GROUP_RANK/$GROUP_WORLD_SIZE $SLURM_PROCID"
((TORCHELASTIC_RESTART_COUNT > 0)) || exec sleep 313'
lab_job killed srun -N2 --ntasks-per-node=2 "${tasks[@]}" --lease=2 --nnodes=1:2 bash -c "$place"
wait_until 20 count_is "sleep 313" 4 || fail "the workers do not run"
kill -KILL "$(agent n1 0)"
join killed 30
[[ $(grep -h '^g1' "$work/killed.out" | sort) == $'g1 n1 0/3 0/1 0/2 0\ng1 n2 1/3 0/2 1/2 1\ng1 n2 2/3 1/2 1/2 2' ]] ||
    fail "generation 1: $(grep '^g1' "$work/killed.out")"
rm -rf "$TMPDIR"/ddprun* # of the ddprun that was killed
expect_nothing_left

say "with every way in which Slurm binds GPUs each task gets a device of its own"
device='if [[ -z ${CUDA_VISIBLE_DEVICES-} ]]; then all=(0 1 2 3); else IFS=, read -ra all <<<"$CUDA_VISIBLE_DEVICES"; fi
echo "$RANK ${all[LOCAL_RANK]-none}"'
# Checks which device ranks 0 to 3 get: their numbers in a row, options of srun…
devices() {
    local expected=$1; shift
    lab 20 srun -N1 -n4 "$@" "${tasks[@]}" bash -c "$device"
    expect_code 0
    [[ $(sort "$work/run.out" | cut -d' ' -f2 | tr -d '\n') == "$expected" ]] || fail "$*: $(sort "$work/run.out")"
}
devices 0123 --gpus-per-node=4
devices 0123 --gpus-per-task=1
devices 0123 --gpus-per-task=1 --gpu-bind=none
devices 3210 --gpus-per-node=4 --gpu-bind=map_gpu:3,2,1,0
devices 3210 --gpus-per-node=4 env CUDA_VISIBLE_DEVICES=3,2,1,0

say "what cannot work is refused in one line"
# Checks that a command is refused with one line: pattern, command…
refused() {
    local pattern=$1; shift
    lab 20 "$@"
    expect_code 2
    expect_in "$work/run.err" "$pattern"
    (($(grep -c '^ddprun' "$work/run.err") == 1)) || fail "not one line"
}
refused 'say that each task is one worker: ddprun --task-per-worker' srun -N2 --ntasks-per-node=2 "$ddprun" true
refused '4 tasks on n1 for 1 GPU; ask Slurm for --gpus-per-node=4' srun -N1 -n4 --gpus-per-node=1 "${tasks[@]}" true
refused "2 of the step's 4 GPUs" srun -N1 -n4 --gpus-per-node=4 --gpu-bind=mask_gpu:3,3,12,12 "${tasks[@]}" true
refused '4: Slurm gave 1 GPU to this task on n1; use --gpus-per-node=4' srun -N1 -n1 --gpus-per-task=1 "$ddprun" --nproc-per-node=4 true
refused 'leave one of them out' srun -N1 -n2 "${tasks[@]}" --nproc-per-node=2 true
refused 'use srun --ntasks-per-node=4 ddprun --task-per-worker' "${tasks[@]}" true

say "a mistake on one host ends the tasks of the other hosts, too, whoever leads"
# The host file puts three tasks on one host and one on the other; each host has two GPUs.
for many in n1 n2; do
    printf '%s\n' n1 n2 "$many" "$many" >"$work/hostfile"
    lab 20 env SLURM_HOSTFILE="$work/hostfile" srun -n4 -m arbitrary --gpus-per-node=2 "${tasks[@]}" true
    expect_code 2
    expect_in "$work/run.err" "3 tasks on $many for 2 GPUs; ask Slurm for --gpus-per-node=3"
    expect_nothing_left 5
done

say "a dry run prints once which rank each task will have"
lab 20 srun -N2 -n5 -m cyclic "$ddprun" --task-per-worker --dry-run=json true
expect_code 0
[[ $(jq -c '[.nodes.list[] | [.name, .first_rank.value]]' "$work/run.out") == '[["n1/0",0],["n2/0",1],["n1/1",2],["n1/2",3],["n1/3",4]]' ]] ||
    fail "said: $(jq -c .nodes "$work/run.out")"
expect_nothing_left

# This story comes last, because srun waits for the lost host.
say "a lost host is replaced as a whole by the spare host"
lab_job lost srun --no-kill -N3 --ntasks-per-node=2 "${tasks[@]}" --lease=2 --nnodes=2 bash -c "$place"
four_said() { (($(grep -c '^g0' "$work/lost.out") == 4)); }
wait_until 20 four_said || fail "the workers do not run"
# Who comes first runs; n1 leads in any case.
mapfile -t hosts < <(sed -n 's,^g0 \(n.\) .*,\1,p' "$work/lost.out" | sort | uniq -c | awk '$1 == 2 { print $2 }')
((${#hosts[@]} == 2)) || fail "a host is split: $(<"$work/lost.out")"
second=${hosts[1]}
spare=n$((6 - ${hosts[0]#n} - ${second#n}))
first=$(sed -n "s,^g0 $second \([02]\)/4 .*,\1,p" "$work/lost.out") # the lowest rank there
"$slurmlab" poweroff "$second"
four_again() { (($(grep -c '^g1' "$work/lost.out") == 4)); }
wait_until 20 four_again || fail "generation 1: $(grep '^g1' "$work/lost.out")"
taken=$(grep -h "^g1 $spare" "$work/lost.out" | cut -d' ' -f3,4 | sort | tr '\n' ' ')
[[ $taken == "$first/4 0/2 $((first + 1))/4 1/2 " ]] || fail "the spare: $(grep '^g1' "$work/lost.out")"
