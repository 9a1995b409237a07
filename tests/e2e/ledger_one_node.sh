#!/usr/bin/env bash
# The ledger of a batch job of one node: a folder in the working directory that is written beside the start. A requeue
# must not train beside an allocation that lives.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun ddpctl

mkdir "$work/project"
cd "$work/project"
# Starts the job with the variables of a step: name, job, SLURM_RESTART_COUNT, options and command. With BATCH= it is
# no batch job.
step() {
    local name=$1 job=$2 count=$3; shift 3
    ALLOCATION=$count SLURM_JOB_ID=$job SLURM_STEP_ID=0 SLURM_CLUSTER_NAME=lab SLURM_STEP_NODELIST=127.0.0.1 \
        SLURM_STEP_NUM_NODES=1 SLURM_NODEID=0 SLURM_STEP_TASKS_PER_NODE=1 SLURM_RESTART_COUNT=$count \
        ENVIRONMENT=${BATCH-BATCH} start "$name" --lease=2 --nproc-per-node=1 "$@"
}
ends() { join "$1" 40; expect_code "$2"; expect_nothing_left; }
files() { find .ddprun/"$1" -name 'entry-*' | wc -l; }

say "a job that succeeds leaves nothing in the working directory"
step one 1 0 true
ends one 0
[[ ! -e .ddprun ]] || fail "left: $(find .ddprun)"

say "an operator can ask it; what was made for him goes with the folder"
step one 7 0 bash -c 'until [[ -e $0/go ]]; do sleep 0.05; done' "$work"
asks() { timeout 20 "$bin/ddpctl" status >"$work/ctl.out" 2>"$work/ctl.err" </dev/null; }
wait_until 20 asks || fail "no answer: $(<"$work/ctl.err")"
expect_in "$work/ctl.out" '^generation +0 runs'
touch "$work/go"
ends one 0
[[ ! -e .ddprun ]] || fail "left: $(find .ddprun)"

say "a job that salloc has begun never goes back into the queue: it has no folder"
BATCH='' step one 2 0 bash -c 'ls -A >"$0/seen"; exit 3' "$work"
ends one 3
[[ ! -e .ddprun && ! -s $work/seen ]] || fail "left: $(find .ddprun)"

say "a job that fails leaves its entries, with the end: the requeue begins at once"
fails=(bash -c 'exit $((3 + ALLOCATION))')
step one 3 0 "${fails[@]}"
ends one 3
(($(files lab.3.0) >= 2)) || fail "no generation and end: $(find .ddprun)"
step one 3 1 "${fails[@]}"
ends one 4
expect_in "$work/one.err" 'belongs to a job that has ended; it was moved'
expect_not_in "$work/one.err" 'recorded no end'

say "the end of another command with the same name proves nothing"
step one 3 1 true
ends one 0
expect_in "$work/one.err" 'begins in 6.0 s'
rm -r .ddprun

# Each worker holds the lock of its allocation. A worker of the other allocation finds it taken.
trains=(bash -c '
    exec 8<>"$0/trains.$ALLOCATION"
    flock 8
    flock -n 7 7<>"$0/trains.$((1 - ALLOCATION))" || { echo "BOTH TRAIN"; exit 1; }
    echo >"$0/up.$ALLOCATION"; ((ALLOCATION > 0)) || exec sleep 312' "$work")

say "Slurm requeues a job that still trains: the old allocation ends with 75, the two never train at once"
step one 4 0 "${trains[@]}"
wait_until 20 test -e "$work/up.0" || fail "the worker does not run"
step two 4 1 "${trains[@]}"
join one 40; expect_code 75
ends two 0
expect_in "$work/one.err" 'restart 1 of this job has begun in another allocation, so this one \(restart 0\) ends'
expect_in "$work/two.err" 'recorded no end, so its workers may still run; .* begins in 6.0 s'
expect_not_in "$work/two.out" 'BOTH TRAIN'
[[ -e $work/up.1 ]] || fail "the new allocation has not trained"

say "the requeued script calls ddprun again: the end of the first call is there, so nothing is waited for"
step one 4 1 "${trains[@]}"
ends one 0
expect_in "$work/one.err" 'belongs to a job that has ended; it was moved'
expect_not_in "$work/one.err" 'recorded no end'
rm -r .ddprun

say "the first allocation was killed: the requeue waits, since nothing tells that it has ended"
rm -f "$work"/up.*
step one 5 0 "${trains[@]}"
wait_until 20 test -e "$work/up.0" -a -e .ddprun/lab.5.0/entry-000000.json || fail "the worker does not run"
kill_tree "${pid[one]}"
wait "${pid[one]}" 2>/dev/null || true
rm -rf "$TMPDIR"/ddprun_*
step two 5 1 "${trains[@]}"
ends two 0
expect_in "$work/two.err" '.ddprun/lab.5.0 continues after entry 0 \(generation 0'
expect_in "$work/two.err" 'begins in 6.0 s'
rm -r .ddprun

say "a requeue that finds no record of the first allocation waits, too: it may not have come to write one"
step one 6 1 true
ends one 0
expect_in "$work/one.err" 'begins in 6.0 s'
rm -r .ddprun

say "a requeue that cannot use what lies there: it may be of an allocation that trains, so nothing begins"
mkdir .ddprun
touch .ddprun/lab.8.0
step one 8 1 true
ends one 69
expect_in "$work/one.err" 'lab.8.0: Not a directory.*; an earlier allocation of this job may still train'
rm -r .ddprun

say "a working directory in which no folder can be made: a line, and the job runs"
touch .ddprun
for count in 0 1; do
    step one 7 "$count" true
    ends one 0
    expect_in "$work/one.err" 'ledger folder .*/.ddprun/lab.7.0: Not a directory; .*; the ledger is in memory instead'
    (($(grep -c 'ledger' "$work/one.err") == 1)) || fail "more than one line"
done
