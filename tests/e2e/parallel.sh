#!/usr/bin/env bash
# tensor_parallel and pipeline, two parts and two replicas: a crash changes no bit, another number of workers resumes,
# and the parameters are those of one process that has the whole model, but for the rounding of sums.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun tensor_parallel pipeline

# The greatest parameter is 0.13, and steps 20 to 40 change it by up to 0.013. Sums in another order make 4e-8 of
# difference.
bound=0.000001
# Workers, program, folder, options…
job() {
    local workers=$1 program=$2 folder=$3; shift 3
    run 60 --standalone --no-label --nproc-per-node="$workers" --max-restarts=1 "$bin/$program" \
        --snapshot-dir "$work/$folder" "$@"
}
apart() { python3 "$e2e/tensors_apart.py" "$work/$1" "$work/$2" 40; }
near() { awk -v apart="$1" -v bound="$bound" 'BEGIN { exit !(apart <= bound) }'; }

say "one process with the whole model"
job 1 tensor_parallel one
expect_code 0
expect_in "$work/run.out" '^1 part of the model, 1 replica, generation 0$'

for program in tensor_parallel pipeline; do
    say "$program: two parts, two replicas, all groups in one order"
    job 4 "$program" "$program.calm" --checked-launches 1000
    expect_code 0
    expect_in "$work/run.out" '^2 parts of the model, 2 replicas, generation 0$'
    if [[ $program == pipeline ]]; then
        expect_in "$work/run.out" '^bubble=0\.[0-9]+ ideal=0\.111 stages=2 micro_batches=8$'
        # What is short beside the step may lie below its neighbour; the last backward pass cannot.
        for stage in 0 1; do expect_in "$work/run.out" "^stage $stage \|[0-7a-h.]+h[.]*\|\$"; done
    fi
    # Of two replicas each writes a share, and a slice is in the snapshot once.
    files=("$work/$program.calm"/snapshot-000000000040-g0*slices-0000[1-4]-of-00004.safetensors)
    [[ ${#files[@]} == 4 ]] || fail "not each of the four ranks has written slices: ${files[*]}"
    bytes=$(cat "${files[@]}" | wc -c)
    # 8 x 66,112 floats, and four headers.
    ((bytes < 2200000)) || fail "the snapshot has $bytes bytes; the model and its momenta have 2115584"
    apart=$(apart one "$program.calm")
    echo "  $apart from the parameters of one process"
    near "$apart" || fail "the parameters are $apart from those of one process, more than $bound"

    say "$program: a rank is killed, and all resume: the same bits"
    job 4 "$program" "$program.crash" --crash-at-step 25
    expect_code 0
    expect_in "$work/run.out" '^resumed from snapshot-000000000020-g0 at step 20$'
    [[ $(apart "$program.calm" "$program.crash") == 0.0 ]] || fail "the crash has changed the result"

    say "$program: another number of workers goes on from the snapshot of four"
    job 4 "$program" "$program.cut" --steps 25
    expect_code 0
    job 2 "$program" "$program.cut"
    expect_code 0
    expect_in "$work/run.out" '^2 parts of the model, 1 replica, generation 0$'
    expect_in "$work/run.out" '^resumed from snapshot-000000000025-g0 at step 25$'
    apart=$(apart one "$program.cut")
    near "$apart" || fail "the parameters are $apart from those of one process, more than $bound"
done

say "the other program takes a snapshot over, cut otherwise"
job 3 pipeline tensor_parallel.cut --steps 41 --parts 3
expect_code 0
expect_in "$work/run.out" '^resumed from snapshot-000000000040-g0 at step 40$'

say "what cannot be cut is refused in one line"
job 3 tensor_parallel none --parts 2
expect_code 2
expect_in "$work/run.err" '3 ranks cannot be cut into replicas of --parts 2; start a multiple of it'
job 4 pipeline none --micro-batches 5
expect_code 2
expect_in "$work/run.err" "--micro-batches 5 does not divide a replica's share of 32 samples"
say "numbers that are none end the job, without a snapshot of them"
for program in tensor_parallel pipeline; do
    job 2 "$program" "nan.$program" --steps 300 --lr 1000
    expect_code 1
    expect_in "$work/run.err" \
        "^(\\[.*\\]:)?$program: the loss at step [0-9]+ is not a finite number; try a lower --lr\$"
    [[ ! -e $work/nan.$program/snapshot-000000000300-g0.json ]] || fail "a snapshot of it"
done
say "an option without an effect is refused, and a rank that is not there"
job 2 tensor_parallel none --micro-batches 4
expect_code 2
expect_in "$work/run.err" '--micro-batches has no effect in tensor_parallel; it is for pipeline; see'
run 60 --standalone --nproc-per-node=1 --max-restarts=auto "$bin/pipeline" --crash-at-step 3
expect_code 2
expect_in "$work/run.err" '--crash-rank 1 is none of the ranks 0 to 0'
expect_nothing_left 5
