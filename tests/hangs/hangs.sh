#!/usr/bin/env bash
# Planted hangs in an unmodified DDP script (plants.py): the line says which rank all wait for, what it does and where.
# Five in a normal run; all of them, and pauses that are none, with DDPRUN_LONG=1. Argument: a kind, to play only that.
set -- current "$@"
source "$(dirname "${BASH_SOURCE[0]}")/../e2e/pytorch_common.sh"
need_built ddprun
plants=$(dirname "${BASH_SOURCE[0]}")/plants.py
for_rank="have waited for [0-9.]+ s in a collective, in step .*plants.py:[0-9]+., for rank 1 .local 1 on [^ ]+., which"
# What the line must say, by kind: the rank, what it does, and the function.
declare -A expected=(
    [sleeps]="$for_rank sleeps in sleeps "
    [spins]="$for_rank computes in spins "
    [computes]="$for_rank computes in computes "
    [reads_fifo]="$for_rank reads in reads_fifo "
    [reads_pipe]="$for_rank reads in reads_pipe "
    [reads_socket]="$for_rank reads in reads_socket "
    [waits_for_child]="$for_rank waits for a process that it has started in waits_for_child "
    [waits_for_lock]="$for_rank waits in waits_for_lock "
    [waits_for_thread]="$for_rank waits in waits_for_thread "
    [waits_for_loader_child]="$for_rank waits in waits_for_loader_child "
    [gil_held]="$for_rank sleeps in gil_held "
    [stops]="$for_rank is stopped by a signal in stops "
    [mismatch]="all ranks .* but not in the same one: rank 1 .*plants.py:[0-9]+, barrier.; the others in train .*, all_reduce"
    [new_group]="2 ranks have waited .* until all ranks have come, in train .*, new_group., and so far without rank 1 .*, all_reduce"
    [no_init]="2 ranks have waited .* until all ranks have come, in .*, and so far without rank 1 .* sleeps in sleeps "
)
now=(sleeps stops mismatch)
pauses=(evaluates saves pauses)

# Plays a plant with its options: name, kind, options.
begin() {
    local name=$1 kind=$2; shift 2
    start "$name" --standalone --nproc-per-node=3 --max-restarts=0 "$@" --python "$python" "$plants" "$kind"
}
told() { grep -Eq "${expected[$2]}" "$work/$1.err"; }
# Ends a job whose workers need not obey.
end() {
    pkill -KILL -P "${pid[$1]}" || true
    kill -KILL "${pid[$1]}" 2>/dev/null || true
    wait "${pid[$1]}" 2>/dev/null || true
    forget "$1"
}
# Plays one kind, and waits for its line.
planted() {
    say "planted: $1"
    begin "$1" "$1"
    wait_until 120 told "$1" "$1" || fail "the line about $1 has not come"
    # The job is not ended for it.
    expect_not_in "$work/$1.err" 'generation 0 ends'
    end "$1"
}

kinds=("${now[@]}")
[[ -z ${DDPRUN_LONG:-} ]] || kinds=("${!expected[@]}")
[[ -z ${2:-} ]] || kinds=("$2")
for kind in "${kinds[@]}"; do planted "$kind"; done
[[ -z ${2:-} ]] || exit 0

say "with --hang-timeout it is a hang, of the rank that all wait for: exit code 124"
begin hung sleeps --hang-timeout=3 --lease=6
join hung 120
expect_code 124
expect_in "$work/hung.err" 'meaning   : 2 ranks have waited .* for rank 1 .* which sleeps in sleeps .* .--hang-timeout 3.0 s.$'
expect_in "$work/hung.err" '^  rank      : 1 '
expect_nothing_left

say "a pause is told, and is no hang: the job goes on and succeeds"
[[ -n ${DDPRUN_LONG:-} ]] || pauses=(pauses)
for kind in "${pauses[@]}"; do
    SECONDS_OF_PAUSE=20 begin "$kind" "$kind" --hang-timeout=60 --lease=6
    join "$kind" 180
    expect_code 0
    expect_in "$work/$kind.err" "$for_rank"
    expect_in "$work/$kind.err" 'the job goes on; all its ranks had stood still for '
    expect_not_in "$work/$kind.err" 'generation 0 ends because|--hang-timeout 60'
done

say "a job that trains is not spoken of"
STEP=0.2 begin none none
join none 120
expect_code 0
expect_not_in "$work/none.err" 'have waited|goes on'
