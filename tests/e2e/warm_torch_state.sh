#!/usr/bin/env bash
# All that can be seen of a worker with a real PyTorch is the same warm and cold: after its imports, when the group is
# made, after the first step, and at the end of random programs (PROGRAMS, from SEED on). Takes hours: only with
# tests/run.sh --long.
source "$(dirname "${BASH_SOURCE[0]}")/pytorch_common.sh"
source "$e2e/warm_common.sh"
need_built ddprun
with_fork_server
export PYTHONDONTWRITEBYTECODE=1
clean_up() { marked | xargs -r kill -9 2>/dev/null; }

compare() { # folder, cases…
    local folder=$1; shift
    mkdir "$work/$folder"
    DDPRUN_TEST_MARK=$mark python3 "$e2e/warm/suite.py" "$ddprun" "$python" "$work/$folder" --jobs=1 "$@" \
        >"$work/$folder.out" || fail "a warm worker can be told from a cold one"
    tail -n 1 "$work/$folder.out"
}

say "a worker is the same after its imports, with its group, and after a step"
compare places "$e2e/warm/cases/torch.txt"

say "random programs with PyTorch are the same warm and cold"
python3 "$e2e/warm/random_programs.py" "${SEED:-1}" "${PROGRAMS:-100}" torch >"$work/random.txt"
compare random --generations=2 --modes=off,auto "$work/random.txt"
expect_nothing_left 5
