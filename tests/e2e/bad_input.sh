#!/usr/bin/env bash
# Wrong command lines, variables and surroundings. Each is refused with one line that names the place and with exit code
# 2 or 69, and nothing is left behind.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun

# Runs ddprun with wrong input and checks the refusal: title of the story, exit code, pattern that the line must
# contain, then variables and arguments as env takes them.
refused() {
    local expected=$2 pattern=$3 words=()
    say "$1"; shift 3
    while [[ ${1:-} == [A-Z]*=* ]]; do words+=("$1"); shift; done
    code=0
    env DDPRUN_TEST_MARK="$mark" "${words[@]}" timeout --kill-after=5 30 "$ddprun" "$@" \
        >"$work/run.out" 2>"$work/run.err" </dev/null || code=$?
    expect_code "$expected"
    (($(wc -l <"$work/run.err") == 1)) || fail "not one line on stderr"
    expect_in "$work/run.err" "$pattern"
    [[ ! -s $work/run.out ]] || fail "something stands on stdout"
    expect_nothing_left
}

echo text >"$work/not_executable"
# One node with one worker: what is wrong comes after these.
one=(--standalone --nproc-per-node=1)

refused "unknown option" 2 'nprocs-per-nod' --nprocs-per-nod=4 /bin/true
refused "a number in words" 2 'nproc-per-node.*four' --standalone --nproc-per-node=four /bin/true
refused "no workers" 2 'nproc-per-node' --standalone --nproc-per-node=0 /bin/true
refused "a range in the wrong order" 2 'nnodes' --nnodes=4:2 /bin/true
refused "a number in words, in a variable" 2 'PET_NPROC_PER_NODE.*many' PET_NPROC_PER_NODE=many --standalone /bin/true
refused "no program" 2 'program' "${one[@]}"
refused "an option without its value" 2 'nproc-per-node' --standalone --nproc-per-node
refused "program not found" 2 'no-such-program' "${one[@]}" ./no-such-program
refused "program not in PATH" 2 'no-such-program' "${one[@]}" no-such-program
refused "program not executable" 2 'not_executable' "${one[@]}" "$work/not_executable"
echo text >"$work/script.py"
refused "a script that is not executable, with --no-python" 2 'script.py: not executable.*leave --no-python out' "${one[@]}" \
    --no-python "$work/script.py"
refused "the program is a folder" 2 "$work" "${one[@]}" "$work"
refused "standalone with two nodes" 2 'standalone' --standalone --nnodes=2 /bin/true
refused "node rank outside the range" 2 'node-rank' --nnodes=2 --node-rank=2 --rdzv-endpoint=127.0.0.1:29500 /bin/true
refused "module and no-python" 2 'no-python' "${one[@]}" --module --no-python true
refused "port outside the range" 2 'rdzv-endpoint' --nnodes=2 --node-rank=0 --rdzv-endpoint=127.0.0.1:99999 /bin/true
refused "a lease that is too short" 2 'lease' --nnodes=2 --node-rank=0 --rdzv-endpoint=127.0.0.1:29500 --lease=0.5 /bin/true

# The variables of a Slurm step of two nodes with a task on each. The stories below damage one of them.
step=(SLURM_JOB_ID=7 SLURM_JOBID=7 SLURM_STEP_ID=0 SLURM_STEPID=0 SLURM_PROCID=0 SLURM_NODEID=0 SLURM_LOCALID=0
    SLURM_STEP_NUM_NODES=2 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_TASKS_PER_NODE='1(x2)' SLURM_NTASKS=2)
refused "a host list with a mistake" 2 'SLURM_STEP_NODELIST.*' "${step[@]}" 'SLURM_STEP_NODELIST=gpu[01-0x]' /bin/true
refused "a task count with a mistake" 2 'SLURM_STEP_TASKS_PER_NODE' "${step[@]}" 'SLURM_STEP_NODELIST=gpu[01-02]' \
    'SLURM_STEP_TASKS_PER_NODE=1(x' /bin/true

# A node of a job of two. The other node never comes, so a job that is not refused ends after 5 s.
two=(--nnodes=2 --node-rank=0 --join-timeout=5 --nproc-per-node=1)
# Another ddprun holds the port. It waits for a second node that never comes.
at=$(free_port)
start holder --nnodes=2 --node-rank=0 --rdzv-endpoint="127.0.0.1:$at" --rdzv-id=holder --join-timeout=60 /bin/true
reach() { (exec 3<>"/dev/tcp/127.0.0.1/$at") 2>/dev/null; }
wait_until 10 reach || fail "the port's holder does not listen"
# The refused ddprun gets another mark: refused() expects that nothing with its mark is left, and the holder stays.
holder=$mark mark=$mark-second
refused "port in use" 69 "$at" "${two[@]}" --rdzv-endpoint="127.0.0.1:$at" --rdzv-id=mine /bin/true
mark=$holder
kill -0 "${pid[holder]}" || fail "the holder of the port was harmed"
kill -TERM "${pid[holder]}"
join holder 20
expect_nothing_left

refused "a ledger folder that cannot be created" 69 '/dev/null/x' "${two[@]}" --rdzv-endpoint="127.0.0.1:$at" \
    --ledger=directory:/dev/null/x /bin/true
