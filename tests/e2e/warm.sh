#!/usr/bin/env bash
# Warm starts: Python workers that a server forks are as those that start cold, and when the server cannot help, they
# start cold.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun
need_program python3
scripts=$e2e/warm
export PYTHONDONTWRITEBYTECODE=1

# The lines of the workers in a file: those that are not ddprun's.
workers_lines() { grep -v '^ddprun: ' "$1" || true; }

# Runs a command cold and warm, and compares what comes of it: ddprun's arguments.
same_warm_and_cold() {
    local cold_code
    run 30 --standalone --no-label --max-restarts=0 --warm=off "$@"
    cold_code=$code
    workers_lines "$work/run.out" >"$work/cold.out"
    sed '/=====/,$d' "$work/run.err" | workers_lines /dev/stdin >"$work/cold.err"
    run 30 --standalone --no-label --max-restarts=0 --warm=always -v "$@"
    expect_in "$work/run.err" 'a fork server for warm starts is ready'
    expect_not_in "$work/run.err" 'cold, because'
    expect_code "$cold_code"
    cmp <(workers_lines "$work/run.out") "$work/cold.out" || fail "other output of $*"
    cmp <(sed '/=====/,$d' "$work/run.err" | workers_lines /dev/stdin) "$work/cold.err" || fail "other errors of $*"
}

say "each kind of script prints the same and ends in the same way"
for kind in $(sed -n 's/^    "\([a-z_]*\)": .*/\1/p' "$scripts/kinds.py"); do
    same_warm_and_cold "$scripts/kinds.py" "$kind"
done
same_warm_and_cold "$scripts/broken.py"
