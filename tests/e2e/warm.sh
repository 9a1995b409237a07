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
