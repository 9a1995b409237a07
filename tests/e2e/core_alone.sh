#!/usr/bin/env bash
# ddprun without the products beside its core (the preset `core`): it builds without gRPC, starts jobs, restarts and
# meets like any other, and refuses the options of what it has not.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_program ninja
need_built ddpctl

say "it builds, and reads no header of gRPC or Python"
cd "$root"
configure=(cmake --preset core)
! command -v ccache >/dev/null || configure+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
# The caches that tests/run.sh fills: paths below this folder do not count.
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros
{ "${configure[@]}" && time cmake --build --preset core; } >"$work/build.out" 2>"$work/build.err" ||
    fail "it does not build"
grep -E '^(real|user|sys)' "$work/build.err"
python3 tests/counts/core_closure.py build-core

export DDPRUN_BIN=$root/build-core/bin
ddprun=$DDPRUN_BIN/ddprun
for test in standalone two_nodes survivors ledger_directory; do
    say "$test.sh"
    bash "$e2e/$test.sh" >"$work/$test.out" 2>"$work/$test.err" || fail "$test.sh ends with $?"
done

say "options of what it was built without are refused by name"
refuses() { # what is missing, option…
    local missing=$1 option line; shift
    for option in "$@"; do
        code=0
        line=$("$ddprun" "$option" true 2>&1) || code=$?
        [[ $code == 2 && $line == "ddprun: ${option%%=*}: this ddprun was built without $missing" ]] ||
            fail "$option: code $code, $line"
    done
}
refuses "warm starts" --warm=auto --framework-stop=auto --flight-recorder
refuses "the operators' service" --on-event=true
refuses etcd --ledger=etcd:localhost:2379 --etcd-user-file=x
refuses MPI --pmi
refuses diagnosis --hang-timeout=auto
refuses rehearsal --rehearse=kill --rehearse-steps=9

say "an operator who calls is turned away, and the job goes on"
start job --nnodes=1 --rdzv-endpoint="127.0.0.1:$(free_port)" --rdzv-id=lone --ledger="directory:$work/ledgers" \
    --nproc-per-node=1 --no-python bash -c "until [[ -e $work/go ]]; do sleep 0.05; done"
wait_until 20 test -e "$work/ledgers/lone/entry-000000.json" || fail "no generation"
! timeout 30 "$bin/ddpctl" --ledger="$work/ledgers/lone" status >"$work/ctl.out" 2>"$work/ctl.err" ||
    fail "ddpctl has got an answer"
touch "$work/go"
join job 20
expect_code 0
expect_nothing_left
