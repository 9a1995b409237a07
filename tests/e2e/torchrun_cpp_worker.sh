#!/usr/bin/env bash
# A C++ worker under stock torchrun: it finds out by itself which protocol torchrun's store speaks, and meets the others
# there. Argument: debian or current.
source "$(dirname "${BASH_SOURCE[0]}")/pytorch_common.sh"
need_built smallest

# torchrun 1.13 cannot read its own default of these two with Python 3.11.
output=(--redirects=0:1,1:1 --tee=0:1,1:1 --log_dir="$work/logs")
# Runs torchrun to its end: arguments… Sets code; output in $work/run.out.
torchrun() {
    code=0
    DDPRUN_TEST_MARK=$mark timeout --kill-after=5 100 "${torchrun[@]}" "${output[@]}" "$@" \
        >"$work/run.out" 2>"$work/run.err" </dev/null || code=$?
}
# Checks that all ranks have met: how many, the sum of their numbers.
ranks_met() {
    expect_code 0
    (($(grep -c "of $1: the ranks add up to $2" "$work/run.out") == $1)) || fail "not all $1 met"
}

say "two workers on the store of torchrun's agent"
torchrun --nnodes=1 --nproc_per_node=2 --master_port="$(free_port)" --no_python "$bin/smallest"
ranks_met 2 1
expect_nothing_left 5

if [[ ${1:-debian} == current ]]; then
    # torchrun 1.13 has its workers serve a store themselves here.
    say "two workers under --standalone"
    torchrun --standalone --nproc_per_node=2 --no_python "$bin/smallest"
    ranks_met 2 1

    say "two workers on PyTorch's older back end"
    USE_LIBUV=0 torchrun --nnodes=1 --nproc_per_node=2 --master_port="$(free_port)" --no_python "$bin/smallest"
    ranks_met 2 1
fi
expect_nothing_left 5
