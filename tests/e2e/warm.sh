#!/usr/bin/env bash
# Warm starts: Python workers that a server forks are as those that start cold, and when the server cannot help, they
# start cold.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
source "$e2e/warm_common.sh"
need_built ddprun
need_program python3
scripts=$e2e/warm
new_python
# With it come modules of Python itself that the scripts use, too.
package mpmath 1.3.0 <<'END'
import atexit, concurrent.futures, ctypes, decimal, logging, multiprocessing.pool, random
import subprocess, tempfile, threading, uuid
LOG = logging.getLogger(__name__)
END

say "each kind of script prints the same and ends in the same way"
for kind in $(sed -n 's/^    "\([a-z_]*\)": .*/\1/p' "$scripts/kinds.py"); do
    same_warm_and_cold --python "$python" "$scripts/kinds.py" "$kind"
done

say "an empty PYTHONPATH is no folder, also for a worker that starts cold and records its imports"
export PYTHONPATH=
same_warm_and_cold --python "$python" "$scripts/kinds.py" surroundings
for mode in off auto; do # without a restart, auto is off
    run 30 --standalone --no-label --max-restarts=1 --warm=$mode --python "$python" "$scripts/kinds.py" surroundings
    expect_code 0
    [[ $mode == auto ]] || workers_lines "$work/run.out" >"$work/cold.out"
done
cmp <(workers_lines "$work/run.out") "$work/cold.out" || fail "other output with --warm=auto"
