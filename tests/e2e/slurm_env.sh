#!/usr/bin/env bash
# What workers see of Slurm (--slurm-env), with made-up variables of steps on this host: equal and unequal nodes, each
# mode, a smaller generation, and programs that look there before they look at RANK. slurm_main.sh does it with a real
# Slurm.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun

# What a worker does here: it leaves its variables in env.GENERATION.RANK.
show='env | sort >"$0/env.$TORCHELASTIC_RESTART_COUNT.$RANK"'
# The value that a worker has seen: generation, rank, name.
value() { sed -n "s/^$3=//p" "$work/env.$1.$2"; }
# Checks variables of a worker: generation, rank, NAME=value… (NAME= alone: not set).
expect() {
    local generation=$1 rank=$2 pair; shift 2
    for pair in "$@"; do
        [[ $(value "$generation" "$rank" "${pair%%=*}") == "${pair#*=}" ]] ||
            fail "rank $rank of generation $generation: not $pair, but $(value "$generation" "$rank" "${pair%%=*}")"
    done
}
# Checks that Slurm's variables give a worker the same place as torchrun's: generation, rank.
same() {
    local to from
    for to in PROCID:RANK LOCALID:LOCAL_RANK NODEID:GROUP_RANK NTASKS:WORLD_SIZE NPROCS:WORLD_SIZE STEP_NUM_TASKS:WORLD_SIZE \
        NNODES:GROUP_WORLD_SIZE STEP_NUM_NODES:GROUP_WORLD_SIZE; do
        from=$(value "$1" "$2" "${to#*:}")
        [[ -n $from ]] || fail "rank $2 of generation $1 has no ${to#*:}"
        expect "$1" "$2" "SLURM_${to%:*}=$from"
    done
}
# Runs a command with the variables that srun sets for one ddprun on each of two nodes: node id, command…
in_step() {
    local id=$1; shift
    env SLURM_JOB_ID=88 SLURM_JOBID=88 SLURM_CLUSTER_NAME=lab SLURM_JOB_NODELIST='127.0.0.[1-2]' SLURM_JOB_NUM_NODES=2 \
        SLURM_STEP_ID=0 SLURM_STEPID=0 SLURM_STEP_NODELIST='127.0.0.[1-2]' SLURM_STEP_NUM_NODES=2 SLURM_STEP_NUM_TASKS=2 \
        SLURM_STEP_TASKS_PER_NODE='1(x2)' SLURM_TASKS_PER_NODE='1(x2)' SLURM_NNODES=2 SLURM_NTASKS=2 SLURM_NPROCS=2 \
        SLURM_NTASKS_PER_NODE=1 SLURM_CPUS_PER_TASK=8 SLURM_NODEID="$id" SLURM_PROCID="$id" SLURM_LOCALID=0 \
        SLURM_GTIDS="$id" SLURM_TASK_PID=1 PMI_RANK="$id" PMIX_RANK="$id" PMIX_MCA_gds=hash SLURM_MPI_TYPE=pmi2 "$@"
}
# Starts one node: node id, arguments… There is no secret here, without which nodes under Slurm do not start.
node() {
    local id=$1; shift
    DDPRUN_TEST_MARK=$mark in_step "$id" "$ddprun" --ports="$at-$((at + more))" --ledger=memory --identity=none \
        --lease=2 "$@" \
        >"$work/node$id.out" 2>"$work/node$id.err" </dev/null &
    pid[node$id]=$!
}
# Starts both nodes: workers on the second one (the first has two), arguments of both…
both() {
    local second=$1; shift
    rm -f "$work"/env.*
    at=$(free_port)
    node 0 --nproc-per-node=2 "$@"
    # Both nodes are this machine, and the leader must get the port, so it starts first.
    wait_until 20 listens "$at" || fail "the leader does not listen"
    node 1 --nproc-per-node="$second" "$@"
}
more=0 # ports beside the first one
none_lives() { [[ -z $(marked) ]]; }
end_both() { local id; for id in 0 1; do join "node$id" 40; expect_code 0; done; }

say "two equal nodes: every worker looks like a task of the step"
both 2 bash -c "$show" "$work"
end_both
for rank in 0 1 2 3; do
    same 0 $rank
    expect 0 $rank SLURM_TASKS_PER_NODE='2(x2)' SLURM_STEP_TASKS_PER_NODE='2(x2)' SLURM_NTASKS_PER_NODE=2 SLURM_CPUS_PER_TASK=4 \
        SLURM_STEP_NODELIST='127.0.0.[1-2]' SLURM_JOB_ID=88 PMIX_MCA_gds=hash SLURM_STEP_ID= SLURM_STEPID= SLURM_TASK_PID= \
        PMI_RANK= PMIX_RANK= SLURM_MPI_TYPE=
done
expect 0 1 SLURM_GTIDS=0,1
expect 0 3 SLURM_GTIDS=2,3

say "unequal nodes: variables that a node cannot know are not set"
both 1 bash -c "$show" "$work"
end_both
for rank in 0 1 2; do
    same 0 $rank
    expect 0 $rank SLURM_TASKS_PER_NODE= SLURM_STEP_TASKS_PER_NODE= SLURM_NTASKS_PER_NODE=
done
expect 0 2 SLURM_GTIDS=2 SLURM_CPUS_PER_TASK=8

say "--slurm-env=drop: the variables of job, step and PMI are gone"
both 2 --slurm-env=drop bash -c "$show" "$work"
end_both
[[ $(grep -hoE '^(SLURM_|PMI)[A-Z_]*' "$work"/env.* | sort -u | tr '\n' ' ') == "PMIX_MCA_ SLURM_CLUSTER_NAME " ]] ||
    fail "there is $(grep -hE '^(SLURM_|PMI)' "$work"/env.* | sort -u | tr '\n' ' ')"

say "--slurm-env=keep, by its variable: all is as srun has set it"
export PET_SLURM_ENV=keep
both 2 bash -c "$show" "$work"
end_both
unset PET_SLURM_ENV
expect 0 3 SLURM_PROCID=1 SLURM_LOCALID=0 SLURM_NTASKS=2 SLURM_STEP_ID=0 SLURM_TASKS_PER_NODE='1(x2)' PMI_RANK=1 SLURM_GTIDS=1

say "a smaller generation: its own values, and no list that contains the lost node"
both 2 --nnodes=1:2 bash -c "$show"'; ((TORCHELASTIC_RESTART_COUNT > 0)) || exec sleep 309' "$work"
wait_until 30 count_is "sleep 309" 4 || fail "the workers do not run"
kill_tree "${pid[node1]}"
join node0 40
expect_code 0
for rank in 0 1; do
    same 1 $rank
    expect 1 $rank SLURM_NNODES=1 SLURM_NTASKS=2 SLURM_TASKS_PER_NODE=2 SLURM_STEP_NODELIST= SLURM_JOB_NODELIST='127.0.0.[1-2]'
done
wait_until 5 none_lives || fail "left: $(marked | xargs -r ps -o pid,args -p)"
rm -rf "$TMPDIR"/ddprun* # of the node that was killed

say "programs that ask Slurm first find the same world"
# Asks as idr_torch, Lightning and others do, and compares with the variables of torchrun.
cat >"$work/asks.py" <<'PYTHON'
import os, sys
env = os.environ
world = tuple(int(env[name]) for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"))

def tasks_here(text):
    return int(text.split("(")[0])

def of_slurm():
    return (int(env["SLURM_PROCID"]), int(env["SLURM_LOCALID"]), int(env["SLURM_STEP_NUM_TASKS"]),
            tasks_here(env["SLURM_STEP_TASKS_PER_NODE"]))

# idr_torch: srun's own tasks by Slurm, with a port made of the job's id; else by torchrun's variables
if "SLURM_STEP_ID" in env:
    sys.exit("it would meet at a port where nobody listens")
assert of_slurm() == world, (of_slurm(), world)
# nodes times tasks, and what Lightning compares with its own
assert int(env["SLURM_NNODES"]) * int(env["SLURM_NTASKS_PER_NODE"]) == int(env["SLURM_NTASKS"]) == world[2]
assert int(env["SLURM_NTASKS_PER_NODE"]) == world[3]
# who requeues: one worker of the job
assert (env["SLURM_PROCID"] == "0") == (env["RANK"] == "0")
assert int(env["SLURM_GTIDS"].split(",")[world[1]]) == world[0]
PYTHON
both 2 --max-restarts=0 --python=python3 "$work/asks.py"
end_both

say "in a batch script of one node without a step it is the same; outside a job nothing is touched"
SLURM_JOB_ID=88 SLURM_JOB_NUM_NODES=1 SLURMD_NODENAME=n1 SLURM_PROCID=0 SLURM_NTASKS=1 PMI_RANK=0 run 20 --nproc-per-node=2 bash -c "$show" "$work"
expect_code 0
same 0 1
expect 0 1 PMI_RANK= SLURM_TASKS_PER_NODE=2
SLURM_PROCID=5 PMI_RANK=3 run 20 --nproc-per-node=2 bash -c "$show" "$work"
expect_code 0
expect 0 1 SLURM_PROCID=5 PMI_RANK=3 SLURM_NTASKS= SLURM_LOCALID=

say "--virtual-local-rank: SLURM_LOCALID is the LOCAL_RANK, 0"
SLURM_JOB_ID=88 SLURM_JOB_NUM_NODES=1 SLURMD_NODENAME=n1 CUDA_VISIBLE_DEVICES=3,5 run 20 --standalone --nproc-per-node=2 --virtual-local-rank \
    bash -c "$show" "$work"
expect_code 0
same 0 1
expect 0 1 SLURM_LOCALID=0 SLURM_GTIDS=0,1
expect_nothing_left

say "two nodes of one host, as with several slurmd on it: the second one comes first, and has the leader's port"
at=$(free_port) more=3
node 1 --nproc-per-node=1 true
wait_until 20 listens "$at" || fail "the second node does not listen"
node 0 --nproc-per-node=1 true
end_both
