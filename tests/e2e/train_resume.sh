#!/usr/bin/env bash
# train: a crash and a restart end with the same bits as an undisturbed run; a damaged snapshot is skipped.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun train

# A training of four workers: an option of ddprun, folder of the snapshots, more options of train.
job() { run 100 --standalone --nproc-per-node=4 "$1" "$train" --steps 60 --snapshot-every 20 --snapshot-dir "${@:2}"; }
sum_of_run() { checksum_of "$work/run.out" "$work/run.err"; }

say "an undisturbed run"
job --max-restarts=3 "$work/calm"
expect_code 0
calm=$(sum_of_run)
[[ -n $calm ]] || fail "no checksum was printed"

say "a crash at step 50 of rank 2, all resume from step 40"
job --max-restarts=auto "$work/crash" --crash-at-step 50 --crash-rank 2
expect_code 0
[[ $(sum_of_run) == "$calm" ]] || fail "$(sum_of_run) is not $calm"

say "the optimizer's state shared out over the ranks: the same bits, also after a crash"
job --max-restarts=auto "$work/shared" --crash-at-step 50 --crash-rank 2 --zero 1
expect_code 0
[[ $(sum_of_run) == "$calm" ]] || fail "$(sum_of_run) is not $calm"

say "three ranks go on where four have crashed, with the state shared out and without: the same bits"
job --max-restarts=0 "$work/four" --crash-at-step 50 --crash-rank 2 --zero 1
expect_code 137
cp -r "$work/four" "$work/whole"
for zero in 1 0; do
    folder=$work/four
    ((zero)) || folder=$work/whole
    run 100 --standalone --nproc-per-node=3 "$train" --steps 60 --snapshot-every 20 --snapshot-dir "$folder" \
        --zero $zero
    expect_code 0
    cat "$work/run.out" "$work/run.err" >"$work/both.out"
    expect_in "$work/both.out" 'resumed from snapshot-000000000040-g0 at step 40'
    ((zero)) && three=$(sum_of_run)
done
[[ -n $three && $(sum_of_run) == "$three" ]] || fail "$(sum_of_run) is not $three"

say "with no restart left the job ends with the worker's code (128 + SIGKILL)"
job --max-restarts=0 "$work/cut" --crash-at-step 50 --crash-rank 2
expect_code 137
# Both stories below need a folder with snapshots and a job that is not finished.
cp -r "$work/cut" "$work/altered"

# A file of the newest snapshot in a folder: folder. The name tells, because it has the step; a copy has other times.
newest() {
    local latest
    latest=$(find "$1" -type f -name '*.safetensors' | sort | tail -n 1)
    [[ -n $latest ]] || fail "no snapshot in $1"
    echo "$latest"
}
# Resumes from a folder with a damaged snapshot, and checks that it was skipped: folder.
resume_damaged() {
    job --max-restarts=0 "$1"
    expect_code 0
    cat "$work/run.out" "$work/run.err" >"$work/both.out"
    expect_in "$work/both.out" '[Ss]napshot.*(skip|damaged|not whole|checksum)'
    [[ $(sum_of_run) == "$calm" ]] || fail "$(sum_of_run) is not $calm"
}

say "the newest snapshot is cut short"
file=$(newest "$work/cut")
truncate -s $(($(stat -c %s "$file") / 2)) "$file"
resume_damaged "$work/cut"

say "one byte of the newest snapshot is altered"
file=$(newest "$work/altered")
at=$(($(stat -c %s "$file") - 3))
byte=$(od -An -tu1 -j "$at" -N 1 "$file")
printf "\\x$(printf %02x $((byte ^ 255)))" | dd of="$file" bs=1 seek="$at" conv=notrunc status=none
resume_damaged "$work/altered"

say "a snapshot of another model: the report has the message of the worker"
job --max-restarts=0 "$work/calm" --hidden 32
expect_code 2
expect_in "$work/run.err" 'tensor "w1" is F32 \[[0-9]+\] in snapshot [^ ]+, and F32 \[512\] in this program'

say "ranks that differ, which they find after they have met: no restart repairs it, and there is none"
run 60 --standalone --no-python --nproc-per-node=2 bash -c 'exec "$0" --steps 5 --hidden $((16 + RANK))' "$train"
expect_code 2
expect_in "$work/run.err" 'the name, size or type of "[a-z0-9]+" is not the same on rank 1 as on rank 0'
expect_in "$work/run.err" 'no restart: exit code 2 says that the program or its arguments must be changed'
expect_nothing_left
