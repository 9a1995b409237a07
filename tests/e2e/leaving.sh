#!/usr/bin/env bash
# SIGTERM to one ddprun of an elastic job outside Slurm: its node leaves, the other goes on at once. Then the last one
# stops the job.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun

# Saves when it is asked to stop, and is done when the file is there.
cat >"$work/worker.sh" <<'BASH'
trap 'echo "rank $RANK of $WORLD_SIZE saves"; exit 0' TERM
echo "rank $RANK of $WORLD_SIZE runs"
until [[ -e $1 ]]; do sleep 0.05; done
BASH
# Both nodes of a job: more options.
both() {
    local rank at
    at=$(free_port)
    for rank in 0 1; do
        start "n$rank" --nnodes=1:2 --node-rank=$rank --rdzv-endpoint="127.0.0.1:$at" --rdzv-id="$mark" --lease=4 \
            --join-timeout=60 --last-call=30 --ledger="directory:$work/ledger.$at" "$@" \
            bash "$work/worker.sh" "$work/done"
    done
    for rank in 0 1; do wait_until 30 has "$work/n$rank.out" 'of 2 runs' || fail "n$rank does not run"; done
}

for leaves in 1 0; do
    stays=$((1 - leaves))
    say "node $leaves leaves, node $stays goes on"
    rm -f "$work/done"
    both
    kill -TERM "${pid[n$leaves]}"
    join "n$leaves" 30
    expect_code 143
    wait_until 30 has "$work/n$stays.out" 'rank 0 of 1 runs' || fail "the other does not go on"
    : >"$work/done"
    join "n$stays" 30
    expect_code 0
    for rank in 0 1; do expect_in "$work/n$rank.out" 'of 2 saves'; done
    expect_in "$work/n$leaves.err" 'leaves \(SIGTERM\); the job goes on without it'
    expect_in "$work/n$stays.err" 'restarts by cause: 1 planned restart'
    expect_nothing_left
done

say "both are to leave: the second one is the last, and the job stops"
rm -f "$work/done"
both
kill -TERM "${pid[n0]}" "${pid[n1]}"
for rank in 0 1; do join n$rank 30; expect_code 143; done
expect_nothing_left

say "--on-sigterm=stop: the job stops"
both --on-sigterm=stop
kill -TERM "${pid[n1]}"
for rank in 0 1; do join n$rank 30; expect_code 143; done
expect_nothing_left
