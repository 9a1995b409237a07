#!/usr/bin/env bash
# A dry run says what a start would do, and does nothing itself: no process, no socket, no file.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun
need_program jq
cd "$work"
echo "print(1)" >train.py

# Checks the JSON of a dry run: jq filter, what the filter must give.
expect_json() {
    local got
    got=$(jq -rc "$1" "$work/run.out") || fail "no JSON"
    [[ $got == "$2" ]] || fail "$1 is $got, not $2"
}
# in_step runs a command with the variables of a Slurm step: host list, number of nodes, command… NODE is the number of
# this node (0), TASKS are the tasks of each node (one).
cat >in_step <<'END'
#!/bin/sh
nodes=$1 count=$2
shift 2
exec env SLURM_CLUSTER_NAME=lab SLURM_JOB_ID=8812 SLURM_STEP_ID=0 "SLURM_STEP_NODELIST=$nodes" "SLURM_STEP_NUM_NODES=$count" \
    "SLURM_STEP_TASKS_PER_NODE=${TASKS:-1(x$count)}" "SLURM_NODEID=${NODE:-0}" "SLURM_PROCID=${NODE:-0}" "$@"
END
chmod +x in_step
# Runs any command to its end, as run() of common.sh does with ddprun. Sets code.
run_command() {
    code=0
    DDPRUN_TEST_MARK=$mark timeout --kill-after=5 20 "$@" >"$work/run.out" 2>"$work/run.err" </dev/null || code=$?
}

# Compares the variables of a worker that ran with those that the dry run in run.json has printed. Each value that was
# known must be equal, each variable without a known value must exist, and ddprun must set no other. The caller's own
# variables are not counted.
expect_same_variables() { # file of `env -0`
    env -0 | cut -zd= -f1 | sort -z >"$work/callers"
    jq -r '.variables | to_entries[] | select(.value.value != null) | "\(.key)=\(.value.value)"' "$work/run.json" |
        sort >"$work/printed"
    tr '\0' '\n' <"$1" | sort >"$work/seen"
    comm -23 "$work/printed" "$work/seen" >"$work/differs.out"
    [[ -s $work/printed && ! -s $work/differs.out ]] || fail "printed, and not so"
    jq -r '.variables | keys[]' "$work/run.json" | sort >"$work/names"
    cut -zd= -f1 "$1" | sort -z | comm -z -23 - "$work/callers" | tr '\0' '\n' |
        grep -vxE 'DDPRUN_TEST_MARK|_|SHLVL' | comm -13 "$work/names" - >"$work/more.out"
    [[ ! -s $work/more.out ]] || fail "set, and not printed"
    cut -zd= -f1 "$1" | tr '\0' '\n' | sort | comm -23 "$work/names" - >"$work/missing.out"
    [[ ! -s $work/missing.out ]] || fail "printed, and not set"
}
# A dry run, then a real run with the same options: options… The variables that rank 0 sees are in env.0.
compare() {
    rm -f "$work"/env.*
    run 20 --dry-run=json "$@" bash -c 'env -0 >"$0/env.$RANK"' "$work"
    expect_code 0
    cp "$work/run.out" "$work/run.json"
    [[ ! -e $work/env.0 ]] || fail "a worker ran"
    run 20 "$@" bash -c 'env -0 >"$0/env.$RANK"' "$work"
    expect_code 0
    expect_same_variables "$work/env.0"
}

say "one node: rank 0 gets the variables that were printed"
compare --standalone --nproc-per-node=2
compare --nproc-per-node=1 --rdzv-id=mine --role=trainer --max-restarts=2 --signals-to-handle=SIGTERM,SIGUSR1
compare --standalone --nproc-per-node=2 --numa-binding=node --log-dir="$work/logs" --tee=3
# common.sh sets OMP_NUM_THREADS, and ddprun then keeps that value.
(unset OMP_NUM_THREADS; compare --standalone --nproc-per-node=1)
(CUDA_VISIBLE_DEVICES=3,5 compare --standalone --nproc-per-node=2 --virtual-local-rank)
(TORCHELASTIC_ENABLE_FILE_TIMER=1 compare --standalone)
expect_nothing_left

say "the log files are where the dry run said"
rm -rf "$work/logs"
run 20 --dry-run=json --standalone --nproc-per-node=2 --log-dir=logs --tee=1:3 true
[[ ! -e $work/logs ]] || fail "the dry run has made the log folder"
# The part of the path that is random becomes RUN on both sides.
jq -r '.workers.list[].files[]' "$work/run.out" | sed 's/X\{16\}_X\{8\}/RUN/' >"$work/said"
run 20 --standalone --nproc-per-node=2 --log-dir=logs --tee=1:3 true
find "$work/logs" -name '*.log' | sed 's,/logs/[^/]*,/logs/RUN,' | sort -r >"$work/there"
[[ -s $work/said && $(<"$work/said") == "$(<"$work/there")" ]] || fail "said: $(<"$work/said"), there: $(<"$work/there")"

say "two nodes with an endpoint: the ranks of each"
port=$(free_port)
for n in 0 1; do
    "$ddprun" --dry-run=json --nnodes=2 --node-rank=$n --rdzv-endpoint="localhost:$port" --nproc-per-node=2 true >"$work/run.out"
    expect_json .start endpoint
    expect_json '[.workers.list[].rank.value]' "[$((2 * n)),$((2 * n + 1))]"
    expect_json .workers.world_size.value 4
    expect_json .meeting.ports.value "[$port]"
    cp "$work/run.out" "$work/run.$n.json"
done
# Node 0 would listen on this port.
! listens "$port" || fail "the port is open"
rm -f "$work"/env.*
for n in 0 1; do
    start "node$n" --nnodes=2 --node-rank=$n --rdzv-endpoint="localhost:$port" --nproc-per-node=2 bash -c 'env -0 >"$0/env.$RANK"' "$work"
done
for n in 0 1; do
    join "node$n" 20
    expect_code 0
    cp "$work/run.$n.json" "$work/run.json"
    expect_same_variables "$work/env.$((2 * n))"
done

say "a Slurm step of four nodes, from its variables alone"
run_command ./in_step 'gpu[01-03,07]' 4 "$ddprun" --dry-run=json --nproc-per-node=8 train.py
expect_code 0
expect_json '[.nodes.list[] | "\(.name) \(.first_rank.value)"] | join(",")' 'gpu01 0,gpu02 8,gpu03 16,gpu07 24'
expect_json .run_id.value lab.8812.0
expect_json .meeting.leader.value gpu01
expect_json .meeting.ledger.value "directory:$work/.ddprun/lab.8812.0"
expect_json .variables.MASTER_ADDR.value gpu01
expect_json '.command.argv | join(" ")' 'python3 -u train.py'
[[ ! -e $work/.ddprun ]] || fail "the ledger's folder is there"
run_command ./in_step 'gpu[01-03,07]' 4 "$ddprun" --dry-run --nproc-per-node=8 train.py
expect_in "$work/run.out" '^ddprun would start 32 workers on 4 nodes; nothing has been started\.$'
expect_in "$work/run.out" '^  ranks of gpu07 +24-31$'

say "in a running step the first node prints the plan, another node logs only its own workers"
NODE=2 run_command ./in_step 'gpu[01-03,07]' 4 "$ddprun" --dry-run=json --nproc-per-node=8 train.py
expect_code 0
[[ ! -s $work/run.out ]] || fail "the third node prints"
expect_in "$work/run.err" '^ddprun gpu03: 8 workers: --nproc-per-node=8$'

say "nodes that may be unequal: values that hold only for equal nodes are marked"
run_command ./in_step 'gpu[01-02]' 2 CUDA_VISIBLE_DEVICES=0,1,2 "$ddprun" --dry-run=json train.py
expect_json '.workers | "\(.per_node.value), \(.reason)"' '3, one for each GPU of CUDA_VISIBLE_DEVICES=0,1,2'
expect_json .workers.world_size.note 'if each node has 3 workers, as this one'

say "a login node: what cannot be known there is printed as unknown"
run_command "$ddprun" --dry-run=json --nnodes=4 train.py
expect_code 0
expect_json .start step_to_come
expect_json .workers.per_node.value null
expect_json .variables.WORLD_SIZE.value null
expect_json .variables.GROUP_WORLD_SIZE.value 4
run_command "$ddprun" --dry-run --nnodes=4 elsewhere.py
expect_code 0
expect_in "$work/run.out" 'on this host: script elsewhere\.py: No such file'

say "a batch script without srun: the step that srun would start"
run_command env SLURM_JOB_ID=8812 'SLURM_JOB_NODELIST=n[1-4]' SLURM_JOB_NUM_NODES=4 SLURM_NODEID=0 SLURM_PROCID=0 SLURMD_NODENAME=n1 \
    "$ddprun" --dry-run --nproc-per-node=2 train.py
expect_code 0
expect_in "$work/run.out" '^srun ddprun would start 8 workers on 4 nodes'
expect_in "$work/run.out" 'srun is missing'

say "mistakes end as without --dry-run: code 2 and the same message"
# Runs a wrong command with and without --dry-run: command… with DRY in place of the option. --quiet changes nothing
# here.
expect_same_refusal() {
    run_command "${@/#DRY/--quiet}"
    expect_code 2
    cp "$work/run.err" "$work/real"
    run_command "${@/#DRY/--dry-run}"
    expect_code 2
    cmp -s "$work/real" "$work/run.err" || fail "$(<"$work/run.err"), without: $(<"$work/real")"
    [[ ! -s $work/run.out && -s $work/run.err ]] || fail "something else was printed"
}
expect_same_refusal "$ddprun" DRY --nproc-per-node=many train.py
expect_same_refusal "$ddprun" DRY --standalone --nproc-per-node=gpu train.py
expect_same_refusal "$ddprun" DRY --standalone elsewhere.py
expect_same_refusal "$ddprun" DRY --nnodes=2 --rdzv-endpoint=h:0 train.py
expect_same_refusal "$ddprun" DRY --standalone --secret-file="$work/none" train.py
TASKS='4(x2)' expect_same_refusal ./in_step 'n[1-2]' 2 "$ddprun" DRY train.py
expect_same_refusal ./in_step 'n[1-2' 2 "$ddprun" DRY train.py
expect_same_refusal ./in_step 'n[1-2]' 2 "$ddprun" DRY --nnodes=3 train.py
run 20 --dry-run=yaml train.py
expect_code 2
expect_in "$work/run.err" '--dry-run=yaml: not known; give text or json'

say "a plan that cannot be printed is a failure"
run_command bash -c '"$0" --dry-run --standalone true >/dev/full' "$ddprun"
expect_code 69
expect_in "$work/run.err" 'standard output: No space left'

# The proof needs strace, and a kernel that permits it.
say "no process, no socket, no file"
if command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null; then
    # Checks under strace that a command only reads, and writes to its standard output: command…
    quiet() {
        run_command strace -f -o "$work/calls" "$@"
        expect_code 0
        grep -E '^[0-9]+ +(socket|socketpair|bind|listen|connect|clone3?|v?fork|mkdir(at)?|unlink(at)?|rename|mknod(at)?|kill)\(|O_CREAT|O_TRUNC|O_APPEND' \
            "$work/calls" >"$work/changes.out" || true
        [[ -s $work/calls && ! -s $work/changes.out ]] || fail "it does more than read"
    }
    quiet "$ddprun" --dry-run --standalone --log-dir=logs2 --tee=3 --numa-binding=node true
    quiet "$ddprun" --dry-run=json --nnodes=2 --node-rank=0 --rdzv-endpoint="localhost:$port" --ledger="$work/ledger" true
    quiet "$ddprun" --dry-run --nnodes=4 train.py
    export SLURM_JOB_ID=8812 SLURM_STEP_ID=0 SLURM_STEP_NODELIST='n[1-2]' SLURM_STEP_NUM_NODES=2 SLURM_NODEID=0
    quiet "$ddprun" --dry-run true
fi
[[ ! -e $work/logs2 && ! -e $work/ledger && ! -e $work/.ddprun ]] || fail "a folder was made"
expect_nothing_left
