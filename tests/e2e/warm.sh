#!/usr/bin/env bash
# Warm starts: Python workers that a server forks are as those that start cold, and when the server cannot help, they
# start cold.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
source "$e2e/warm_common.sh"
need_built ddprun
need_program python3
scripts=$e2e/warm
export PYTHONDONTWRITEBYTECODE=1

say "each kind of script prints the same and ends in the same way"
for kind in $(sed -n 's/^    "\([a-z_]*\)": .*/\1/p' "$scripts/kinds.py"); do
    same_warm_and_cold "$scripts/kinds.py" "$kind"
done
same_warm_and_cold "$scripts/broken.py"

say "an empty PYTHONPATH is no folder, also for a worker that starts cold and records its imports"
export PYTHONPATH=
same_warm_and_cold "$scripts/kinds.py" surroundings
run 30 --standalone --no-label --max-restarts=0 --warm=auto "$scripts/kinds.py" surroundings
expect_code 0
cmp <(workers_lines "$work/run.out") "$work/cold.out" || fail "other output with --warm=auto"
