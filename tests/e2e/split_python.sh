#!/usr/bin/env bash
# examples/python/fsdp2.py, tensor_parallel.py and pipeline.py under ddprun: a crash, a restart from a sharded snapshot,
# another number of workers, and at the end the loss of one process with the whole model. Argument: current (the
# virtual environment of tests/run.sh); Debian's PyTorch has none of the three.
source "$(dirname "${BASH_SOURCE[0]}")/pytorch_common.sh"
need_built ddprun

# Workers write into each other's lines.
results() { sed "s/RESULT/\n&/g" "$work/run.out" | grep "^RESULT" | sort; }
# Each worker ends with the loss of the single process, but for rounding: 1e-6, where a step changes 1e-3. Workers.
expect_loss() {
    results | awk -v one="$loss" -v workers="$1" '
        { sub(/.*loss=/, ""); d = $1 - one; if (d < -1e-6 || d > 1e-6) bad = 1 }
        END { exit bad || NR != workers }' || fail "the losses are $(results), that of one process is $loss"
}
# Workers, script, exit code, restarts, options…
train() {
    local workers=$1 script=$2 expected=$3 restarts=$4; shift 4
    rm -rf "$work/before"
    [[ ! -d $work/$script ]] || cp -r "$work/$script" "$work/before"
    for _ in 1 2 3; do
        run 120 --standalone --no-label --python="$python" --nproc-per-node="$workers" --max-restarts="$restarts" \
            "$root/examples/python/$script.py" --snapshots "$work/$script" --snapshot-every 3 --steps 12 "$@"
        aborted_at_exit "$work/run.err" || break
        rm -rf "${work:?}/$script"
        [[ ! -d $work/before ]] || cp -r "$work/before" "$work/$script"
    done
    expect_code "$expected"
}
# Continues with another number of workers from a step: workers, script, step.
continues() {
    say "$2: $1 workers go on, and end with the loss of one process"
    train "$1" "$2" 0 0
    expect_in "$work/run.out" "^resumed at step $3 with $1 workers"
    expect_loss "$1"
}
# A job that crashes before step 8 is not restarted: workers, script.
crashes() {
    say "$2: one of $1 workers crashes"
    train "$1" "$2" 3 0 --crash-at-step 8
    [[ -z $(results) ]] || fail "a worker has ended well"
}

say "one process, the whole model"
train 1 fsdp2 0 0
loss=$(results | sed 's/.*loss=//; s/ .*//')
[[ $loss == 0.?* ]] || fail "the loss is $loss"
rm -r "$work/fsdp2"

say "fsdp2: one of 3 workers crashes, and all are started again"
train 3 fsdp2 0 1 --crash-at-step 8 --steps 10
expect_in "$work/run.out" '^resumed at step 6 with 3 workers'
continues 2 fsdp2 9
(($(results | sed 's/.*parameters=//' | paste -sd+) == 67969)) || fail "the parts are not the whole: $(results)"
crashes 4 tensor_parallel
continues 2 tensor_parallel 6
(($(results | grep -c 'up=(64, 64)') == 2)) || fail "the layers are not cut: $(results)"
crashes 2 pipeline
continues 3 pipeline 6
[[ $(results | sed 's/.*blocks=//' | paste -sd+) == 1+1+2 ]] || fail "the layers are not dealt: $(results)"
expect_nothing_left 5
