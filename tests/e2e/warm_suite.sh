#!/usr/bin/env bash
# A warm worker cannot be told from a cold one: small scripts and random programs run cold, warm, warm again and as the
# second job of a script, and all that can be seen of their workers is compared. With tests/run.sh --long all scripts
# and hundreds of programs (PROGRAMS, from SEED on), else a part. Nothing in the heaps of warm workers was
# made once for all. Each bug of warm/mutations.txt is found.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
source "$e2e/warm_common.sh"
need_built ddprun
need_program python3
new_python
for row in "jinja2 3.1.6" "networkx 3.5" "six 9.9.90" "tqdm 9.9.90"; do
    package ${row% *} "${row#* }" <"$e2e/warm/packages/${row% *}.py"
done
package mpmath 1.3.0 <"$e2e/warm/probe.py"
clean_up() { marked | xargs -r kill -9 2>/dev/null; }

compare() { # folder, options and cases…
    local folder=$1; shift
    mkdir "$work/$folder"
    DDPRUN_TEST_MARK=$mark python3 "$e2e/warm/suite.py" "$ddprun" "$python" "$work/$folder" "$@" >"$work/$folder.out" ||
        fail "a warm worker can be told from a cold one"
    tail -n 1 "$work/$folder.out"
}

say "each script is the same warm and cold, and warm where it should be"
part=--only=nothing,rank_before,module,signals_between,logging_after,patched_between
part+=,unseeded,log_of_rank_0,not_proved,other_order
[[ -z ${DDPRUN_LONG:-} ]] || part=--only=
compare scripts $part "$e2e"/warm/cases/{state,programs}.txt

say "random programs are the same warm and cold"
[[ -n ${DDPRUN_LONG:-} ]] && programs=${PROGRAMS:-300} || programs=30
python3 "$e2e/warm/random_programs.py" "${SEED:-1}" "$programs" >"$work/random.txt"
[[ -n ${DDPRUN_LONG:-} ]] && quick=() || quick=(--generations=2 --modes=off,auto)
compare random "${quick[@]}" "$work/random.txt"

say "no value was made once for all warm workers"
[[ -n ${DDPRUN_LONG:-} ]] && part=--only= || part=--only=unseeded
HEAP=1 compare heaps --modes=off,auto $part "$e2e/warm/cases/programs.txt"

say "planted bugs are found"
mkdir "$work/bugs"
[[ -n ${DDPRUN_LONG:-} ]] && bugs=() || bugs=(path methods-not-compared)
DDPRUN_TEST_MARK=$mark python3 "$e2e/warm/mutations.py" "$ddprun" "$python" "$work/bugs" "${bugs[@]}" \
    >"$work/bugs.out" || fail "a bug is not found"
tail -n 1 "$work/bugs.out"
expect_nothing_left 5
