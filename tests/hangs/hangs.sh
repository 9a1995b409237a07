#!/usr/bin/env bash
# Planted hangs in an unmodified DDP script (plants.py): the line says which rank all wait for, what it does and where.
# Some in a normal run; all of them, and pauses that are none, with DDPRUN_LONG=1. Arguments: kinds, to play only these.
only=("$@")
set -- current
source "$(dirname "${BASH_SOURCE[0]}")/../e2e/pytorch_common.sh"
need_built ddprun
plants=$(dirname "${BASH_SOURCE[0]}")/plants.py
at_once=4  # plants

rank_1="rank 1 .local 1 on [^ ]+."
# What the line must say of rank 1, for which all wait: what it does, and the function.
declare -A waited_for=(
    [sleeps]="sleeps in sleeps "
    [gil_held]="sleeps in gil_held "
    [in_forward]="sleeps in in_forward\\."
    [in_backward_hook]="sleeps in in_backward_hook\\."
    [in_dataset]="sleeps in in_dataset\\."
    [in_pickling]="sleeps in in_pickling\\."
    [looks_for_file]="sleeps in looks_for_file "
    [looks_for_key]="(sleeps|reads|writes|computes|waits) in looks_for_key "
    [spins]="computes in spins "
    [computes]="computes in computes "
    [expression]="computes in expression "
    [collects_garbage]="computes in collects_garbage "
    [reads_fifo]="reads in reads_fifo "
    [reads_pipe]="reads in reads_pipe "
    [reads_socket]="reads in reads_socket "
    [reads_answer]="reads in reads_answer "
    [reads_output_of_child]="(reads|waits) in reads_output_of_child "
    [full_pipe]="writes in full_pipe "
    [waits_for_child]="waits for a process that it has started in waits_for_child "
    [waits_for_frozen_child]="waits for a process that it has started in waits_for_frozen_child "
    [waits_for_loader_child]="waits in waits_for_loader_child "
    [waits_for_pool]="waits in waits_for_pool "
    [file_locked]="waits in file_locked "
    [in_the_kernel]="hangs in the kernel .D. in in_the_kernel "
    [waits_for_lock]="waits in waits_for_lock "
    [two_locks]="waits in two_locks "
    [waits_for_thread]="waits in waits_for_thread "
    [waits_for_event]="waits in waits_for_event "
    [waits_for_queue]="waits in waits_for_queue "
    [waits_for_future]="waits in waits_for_future "
    [waits_for_loop]="waits in waits_for_loop "
    [waits_for_nothing]="waits in waits_for_nothing "
    [waits_for_caller]="waits in waits_for_caller "
    [waits_for_signal]="waits in waits_for_signal "
    [stops]="is stopped by a signal in stops "
    [chatty]="sleeps in sleeps "
    [busy]="waits in waits_for_event "
    [at_the_end]="waits"
    [receives]="waits in receives .*, recv."
)
different="all ranks have waited for [0-9.]+ s in collectives, but not in the same one: $rank_1, which waits in a collective in"
unmet="$rank_1 has not called"
# What the line must say in all other cases.
declare -A expected=(
    [two_ranks]="1 rank has waited .* for $rank_1, which sleeps in sleeps .*; rank 2 .*, which sleeps in sleeps "
    [no_network]="all ranks have waited .*: the network of $rank_1 is lost"
    [mismatch]="$different mismatch .*, barrier.; the others in mismatch .*, all_reduce"
    [fewer_batches]="$different fewer_batches .*, barrier.; the others in step "
    [barrier_on_one]="$different barrier_on_one .*, barrier.; the others in step "
    [broadcasts]="$different broadcasts "
    [subgroup]="$different (subgroup|step) "
    [in_wait]="all ranks have waited for [0-9.]+ s in a collective, in in_wait .*: they have not made the same calls, or"
    [new_group]="$unmet new_group yet; 2 ranks wait for it, [0-9.]+ s so far, in new_group .*, new_group.; it .*, all_reduce"
    [no_init]="$unmet init_process_group yet; 2 ranks wait for it, .*; it sleeps in sleeps "
)
for kind in "${!waited_for[@]}"; do
    expected[$kind]="(2 ranks have|all ranks have) waited for [0-9.]+ s in a collective, in .*, for $rank_1, which ${waited_for[$kind]}"
done
pauses=(evaluates evaluates_with_torch has_much_garbage is_nice one_long_call saves saves_and_syncs pages downloads
    saves_in_child compiles slow_loader saves_in_thread is_locked_out pauses is_debugged looks_for_late_file
    reads_from_child holds_gil)

# What it must say, too, with --flight-recorder.
in_group="of group 0 .default_pg, gloo."
declare -A recorded=(
    [in_wait]="call [0-9]+ $in_group is barrier on $rank_1, and all_reduce of .64. Float on rank 0 .* and rank 2 "
    [mismatch]="call [0-9]+ $in_group is barrier on $rank_1, and all_reduce of .1048576. Float on rank 0 .* and rank 2 "
    [broadcasts]="call [0-9]+ $in_group is all_gather on $rank_1, and broadcast of .4. Float on rank 0 .* and rank 2 "
    [barrier_on_one]="call [0-9]+ $in_group is barrier on $rank_1, and all_reduce of .4160. Float on rank 0 .* and rank 2 "
    [subgroup]="$rank_1 has not made call [0-9]+ $in_group, all_reduce of .4160. Float, but rank 0 .* and rank 2 .* have"
    [sleeps]="$rank_1 has not made call [0-9]+ $in_group, all_reduce of .4160. Float, but rank 0 .* and rank 2 .* have"
    [no_network]="all have made the same calls"
)

# Plays a plant with its options: name, kind, options.
begin() {
    local name=$1 kind=$2; shift 2
    start "$name" --standalone --nproc-per-node=3 --max-restarts=0 "$@" --python "$python" "$plants" "$kind"
}
told() { grep -Eq "${expected[$1]}" "$work/$1.err"; }
# Ends a job whose workers need not obey.
end() {
    pkill -KILL -P "${pid[$1]}" || true
    kill -KILL "${pid[$1]}" 2>/dev/null || true
    wait "${pid[$1]}" 2>/dev/null || true
    forget "$1"
}
# Plays these kinds at once, and waits for their lines. The jobs are not ended for them.
planted() {
    say "planted: $*"
    local kind
    for kind in "$@"; do begin "$kind" "$kind"; done
    for kind in "$@"; do
        wait_until 180 told "$kind" || fail "the line about $kind has not come, but: $(tail -n 3 "$work/$kind.err")"
        expect_not_in "$work/$kind.err" 'generation 0 ends'
    done
    for kind in "$@"; do end "$kind"; done
}
# The same, asking the recorders. OPTIONS: more options of ddprun.
compared() {
    say "compared: $* ${options[*]:-}"
    local kind
    for kind in "$@"; do begin "$kind" "$kind" --flight-recorder "${options[@]}"; done
    for kind in "$@"; do
        wait_until 180 told "$kind" || fail "the line about $kind has not come, but: $(tail -n 3 "$work/$kind.err")"
        expect_in "$work/$kind.err" "${expected[$kind]}.*; as PyTorch's flight recorders have it, ${recorded[$kind]}"
    done
    for kind in "$@"; do end "$kind"; done
}
in_groups() {
    local play=$1; shift
    while (($#)); do
        "$play" "${@:1:at_once}"
        shift $(($# < at_once ? $# : at_once))
    done
}

if ((${#only[@]})); then
    in_groups planted "${only[@]}"
    exit 0
fi
kinds=(sleeps stops mismatch no_network)
[[ -z ${DDPRUN_LONG:-} ]] || kinds=("${!expected[@]}")
# Jobs wait most of the time, so stories are played beside each other. This one trains for longer than a rank must stand
# still until a line comes.
STEP=0.2 begin none none
in_groups planted "${kinds[@]}"

say "a job that trains is not spoken of"
join none 120
expect_code 0
# On a loaded machine a rank may come late to the first meeting, of which a line tells.
expect_not_in "$work/none.err" 'waited .* in (a collective|collectives)'

# These answer as the programs of the same names do.
mkdir "$work/tools"
cat >"$work/tools/nvidia-smi" <<'TOOL'
#!/bin/sh
case $1 in
    --query-gpu=uuid,index,utilization.gpu) printf 'GPU-0, 4, 0\nGPU-1, 5, 100\nGPU-2, 6, 0\n' ;;
    --query-compute-apps=gpu_uuid,pid)
        for each in $(pgrep -f "plants.py sleeps"); do
            tr '\0' '\n' <"/proc/$each/environ" | sed -n "s/^RANK=\(.*\)/GPU-\1, $each/p"
        done
esac
TOOL
printf '#!/bin/sh\necho "c10d::in_c++ (told by $*)"\n' >"$work/tools/py-spy"
chmod +x "$work"/tools/*
PATH=$work/tools:$PATH begin hung sleeps --hang-timeout=15 --lease=6 --log-dir="$work/logs"
# Also with a sitecustomize of the user's.
mkdir "$work/own"
echo 'import os; open(os.environ["OWN"] + os.environ["RANK"], "w")' >"$work/own/sitecustomize.py"
OWN=$work/own/rank_ PYTHONPATH=$work/own begin differ in_wait --flight-recorder --hang-timeout=20 --lease=6 --log-dir="$work/dumps"
if [[ -z ${DDPRUN_LONG:-} ]]; then
    # Beside this one a fork server is made ready, as beside a user's job.
    PET_WARM=auto END_OF_PAUSE=$work/go END_OF_TRAINING=$work/goes_on begin pauses pauses --hang-timeout=auto --lease=6
fi

say "with --hang-timeout it is a hang, of the rank that all wait for: exit code 124"
join hung 120
expect_code 124
expect_in "$work/hung.err" 'meaning   : 2 ranks have waited .* for rank 1 .* which sleeps in sleeps .* .--hang-timeout 15.0 s.$'
expect_in "$work/hung.err" '^  rank      : 1 '
expect_in "$work/hung.err" 'all workers of its node: .*/attempt_0/standstill.txt'
expect_in "$work/hung.err" 'for rank 1 .* which sleeps in sleeps .*, with GPU 5 at 100 % '
kept=$(find "$work/logs" -name standstill.txt)
expect_in "$kept" '^rank 1, GPU 5 at 100 %'
expect_in "$kept" 'c10d::in_c.. .told by dump --native --pid [0-9]+.'
for rank in 0 1 2; do expect_in "$kept" "^rank $rank, process [0-9]+"; done
expect_in "$kept" 'in sleeps .*plants_of_one.py'
expect_in "$kept" '^    [0-9]+: TCP 127.0.0.1:[0-9]+ to 127.0.0.1:[0-9]+'

say "a program of the trainer library says itself in which call it is"
start trainer --standalone --nproc-per-node=3 --max-restarts=0 --no-python "$bin/train" --steps 1000000 --step-time-ms 20
training() { grep -q 'step=50 ' "$work/trainer.out"; }
wait_until 60 training || fail "it does not train"
of_rank_1() {
    local keeper worker
    for keeper in $(pgrep -P "${pid[trainer]}"); do
        for worker in $(pgrep -P "$keeper"); do
            ! grep -zqx RANK=1 "/proc/$worker/environ" || echo "$worker"
        done
    done
}
kill -STOP "$(of_rank_1)"
told_call() {
    grep -Eq '2 ranks have waited .*, in all_reduce number [0-9]+ .[0-9]+ elements., for rank 1 .*, which is stopped' "$work/trainer.err"
}
wait_until 60 told_call || fail "the line has not come, but: $(tail -n 3 "$work/trainer.err")"
end trainer

say "with --flight-recorder the call is named in which they differ, also in the verdict; the dumps are kept"
join differ 120
expect_code 124
expect_in "$work/differ.err" "meaning   : ${expected[in_wait]}.*; as PyTorch's flight recorders have it, ${recorded[in_wait]}"
for rank in 0 1 2; do
    dump=$(find "$work/dumps" -path "*/attempt_0/flight_recorder_gloo_$rank.json")
    "$python" -c 'import json, sys; assert json.load(open(sys.argv[1]))["entries"]' "$dump" || fail "the dump of rank $rank is none"
    [[ -e $work/own/rank_$rank ]] || fail "the user's sitecustomize has not run in rank $rank"
done
left=$(find "$work/tmp" -name recorders)
[[ -z $left ]] || fail "left: $left"
if [[ -n ${DDPRUN_LONG:-} ]]; then
    say "each of two nodes tells what its workers have recorded"
    port=$(free_port)
    for node in 0 1; do # ranks 0 and 1, and rank 2
        start "node_$node" --nnodes=2 --node-rank="$node" --rdzv-endpoint="127.0.0.1:$port" --rdzv-id="$mark" \
            --nproc-per-node=$((2 - node)) --max-restarts=0 --lease=6 --hang-timeout=20 --flight-recorder \
            --log-dir="$work/node_$node" --python "$python" "$plants" in_wait
    done
    for node in 0 1; do
        join "node_$node" 120
        expect_code 124
    done
    expect_in "$work/node_0.err" "meaning   : ${expected[in_wait]}.*; as PyTorch's flight recorders have it, ${recorded[in_wait]}"
    for rank in 0 1 2; do
        [[ -n $(find "$work/node_$((rank / 2))" -path "*/attempt_0/flight_recorder_gloo_$rank.json" -size +0) ]] ||
            fail "no dump of rank $rank"
    done
    expect_nothing_left
    options=()
    in_groups compared "${!recorded[@]}"
    options=(--warm=off)
    compared mismatch sleeps
    options=(--warm=always)
    compared mismatch sleeps
fi

# A job goes on after the pause, and says so if it had told of it.
paused() {
    say "a pause is no hang: $*"
    local kind
    for kind in "$@"; do begin "$kind" "$kind" --hang-timeout=auto --lease=6; done
    went_on "$@"
}
told_of_rank_1() { grep -Eq "have waited .* for $rank_1, which" "$work/$1.err"; }
went_on() {
    local kind
    for kind in "$@"; do
        join "$kind" 400
        expect_code 0
        expect_in "$work/$kind.err" "have waited .* for $rank_1, which"
        expect_in "$work/$kind.err" 'the job goes on; all its ranks had stood still for '
        expect_not_in "$work/$kind.err" 'generation 0 ends because'
    done
}
if [[ -z ${DDPRUN_LONG:-} ]]; then
    say "a pause is no hang"
    # On a loaded machine it takes long until the line comes.
    wait_until 180 told_of_rank_1 pauses || fail "the pause is not told: $(tail -n 3 "$work/pauses.err")"
    touch "$work/go"
    wait_until 120 grep -q 'the job goes on' "$work/pauses.err" || fail "not told: $(tail -n 3 "$work/pauses.err")"
    touch "$work/goes_on"
    went_on pauses
else
    # Longer than the minute after which --hang-timeout=auto ends what cannot end by itself.
    SECONDS_OF_PAUSE=80 in_groups paused "${pauses[@]}"
    say "a slow first batch is no hang"
    SECONDS_OF_PAUSE=80 STEPS=0 paused slow_loader
fi

if [[ -n ${DDPRUN_LONG:-} ]]; then
    say "a rank that is slow is named with its factor, as is no other"
    STEPS=100000 STEP=0.2 begin slow is_slow
    told_slow() { grep -Eq 'rank 1 .* is slow, not stuck: .*, so it takes ([2-9]|10)[.][0-9] times as long' "$work/slow.err"; }
    wait_until 400 told_slow || fail "the slow rank is not named: $(tail -n 3 "$work/slow.err")"
    expect_not_in "$work/slow.err" 'have waited|rank [02] .* is slow'
    end slow
fi
no_process() { [[ -z $(marked) ]]; } # jobs that were killed have left their folders
wait_until 10 no_process || fail "left: $(marked | xargs -r ps -o pid,ppid,stat,args -p)"
