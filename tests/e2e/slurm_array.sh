#!/usr/bin/env bash
# Elements of a job array, on a real Slurm cluster of four hosts. One element has the array's own id, and to Slurm's
# commands this id means all elements. What ddprun does to one element must not touch the others, whatever their state.
# DDPRUN_LONG=1 plays 20 rounds of random ends, not 2.
source "$(dirname "${BASH_SOURCE[0]}")/slurm_common.sh"
need_built ddprun

export SLURMLAB_NODE_TIMEOUT=5
start_lab 4
cd "$work" # the ledger's folder is made in the working directory

# A worker: folder. It says in which generation it runs, and when it is asked to stop; FILE end lets it end.
# shellcheck disable=SC2016
worker='trap : USR1; trap "echo >>$0/told; exit 0" TERM; echo "$SLURM_JOB_ID" >$0/own; echo "$DDPRUN_RUN_KEY" >>$0/key; echo "$SLURMD_NODENAME" >$0/host
echo >$0/run.$TORCHELASTIC_RESTART_COUNT.$RANK; until [[ -e $0/end ]]; do sleep 0.1; done'

# Submits an array: name, elements (as for --array), options of sbatch, options of ddprun… Sets array, its id, and at, what the
# folders of its elements begin with. The words in $within come before ddprun.
submit() {
    local name=$1 elements=$2 options=$3; shift 3
    at=$work/$name
    {
        echo '#!/bin/bash'
        echo "mkdir -p $at.\$SLURM_ARRAY_TASK_ID"
        printf 'srun --no-kill env -uSLURM_JOB_END_TIME %s' "${within:-}"
        printf ' %q' "$ddprun" --nproc-per-node=1 "$@" bash -c "$worker"
        echo " $at.\$SLURM_ARRAY_TASK_ID"
    } >"$at.sbatch"
    # shellcheck disable=SC2086
    array=$(login sbatch --parsable --requeue --open-mode=append --array="$elements" --ntasks-per-node=1 $options \
        -o "$at.%a.out" -e "$at.%a.err" "$at.sbatch")
}
# Waits until these elements have the workers of a generation: generation, workers, elements…
runs() { (($(compgen -G "$at.$3/run.$1.*" | wc -l) == $2)); }
expect_run() {
    local element
    for element in "${@:3}"; do
        wait_until 40 runs "$1" "$2" "$element" || fail "element $element does not run: $(login squeue -r)"
    done
}
# What Slurm says of an element: element, field.
field() { login scontrol show job -o "${array}_$1" | grep -o " $2=[^ ]*" | head -n 1 | cut -d= -f2; }
is() { [[ $(field "$1" "$2") == "$3" ]]; }
expect() { # element, field, value
    wait_until "${4:-20}" is "$1" "$2" "$3" || fail "element $1: $2 is $(field "$1" "$2"), not $3"
}
# That an element is requeued is seen by Slurm's count. What ddprun says of it may be lost with srun, which Slurm then
# ends.
# An element that was not touched still runs: element.
expect_untouched() {
    is "$1" JobState RUNNING && is "$1" Restarts 0 || fail "element $1: $(login scontrol show job -o "${array}_$1")"
    [[ ! -e $at.$1/told ]] || fail "element $1 was asked to stop"
}
# The element that has the array's own id.
find_own() {
    own=$(grep -l "^$array\$" "$at".*/own) && own=${own%/own} && own=${own##*.} || fail "no element has the array's id"
}
end_all() {
    login scancel "$array"
    wait_until 30 none_queued || fail "not cancelled: $(login squeue)"
    rm -rf "$TMPDIR"/ddprun* # of killed workers
    wait_until 30 idle || fail "the cluster is not idle"
}

say "an element that runs is stopped and requeued, its brothers are not touched"
submit three 0-2 '-N1 --time=30' --requeue-signal=USR1 --verbose --lease=2
expect_run 0 1 0 1 2
(($(cat "$at".*/key | sort -u | wc -l) == 3)) || fail "elements share a key: $(cat "$at".*/key)"
find_own
others=() && for element in 0 1 2; do [[ $element == "$own" ]] || others+=("$element"); done
login scancel -s USR1 "${array}_$own"
expect "$own" Restarts 1
for element in "${others[@]}"; do expect_untouched "$element"; done

say "the requeued one waits, one completes, and the last one is requeued: only this one"
touch "$at.${others[0]}/end"
expect "${others[0]}" JobState COMPLETED
login scancel -s USR1 "${array}_${others[1]}"
expect "${others[1]}" Restarts 1
expect "${others[0]}" JobState COMPLETED
expect "${others[0]}" Restarts 0
expect "$own" Restarts 1
end_all

say "one is requeued while brothers have completed and wait in the queue"
submit queue 0-3%2 '-N1 --time=30' --requeue-signal=USR1
expect_run 0 1 0 1
touch "$at.0/end"
expect 0 JobState COMPLETED
expect_run 0 1 2
login scancel -s USR1 "${array}_1"
expect 1 Restarts 1
expect_run 0 1 3
expect_untouched 2
expect_untouched 3
is 0 JobState COMPLETED && is 0 Restarts 0 || fail "element 0 was requeued"
[[ $(wc -l <"$at.1/told") == 1 ]] || fail "element 1 was asked $(wc -l <"$at.1/told") times"

say "the one with the array's id is requeued: one has completed, one waits, one runs"
find_own
[[ $own == 3 ]] || fail "element $own has the array's id"
login scancel -s USR1 "${array}_3"
expect 3 Restarts 1
sleep 1 # for what must not happen
expect_untouched 2
is 0 JobState COMPLETED && is 0 Restarts 0 || fail "element 0 was requeued"
is 1 JobState PENDING && is 1 Restarts 1 || fail "element 1: $(login scontrol show job -o "${array}_1")"
end_all

say "without the array's variables, too, and with its own time"
# In a container they may be missing. Brothers have less time.
within='-uSLURM_ARRAY_JOB_ID -uSLURM_ARRAY_TASK_ID'
submit alone 0-2 '-N1 --time=30' --requeue-signal=USR1 --verbose --lease=2
within=''
for element in 0 1; do login scontrol update jobid="${array}_$element" timelimit=10; done
expect_run 0 1 0 1 2
find_own
[[ $own == 2 ]] || fail "element $own has the array's id"
asked() { has "$at.2.err" 'squeue reports .* until the time limit'; }
wait_until 20 asked || fail "element 2 has not asked for its time limit"
expect_in "$at.2.err" 'squeue reports 2[89] m [0-9]* s until the time limit'
login scancel -s USR1 "${array}_2"
expect 2 Restarts 1
for element in 0 1; do expect_untouched "$element"; done

say "a job that an element has submitted is not taken for the element, although it has its variables"
mkdir "$work/inner"
inner=$(login env SLURM_ARRAY_JOB_ID="$array" SLURM_ARRAY_TASK_ID=0 sbatch --parsable --requeue -N1 -n1 \
    -o "$work/inner.out" -e "$work/inner.err" --wrap "srun $(printf ' %q' "$ddprun" --nproc-per-node=1 --requeue-signal=USR1 \
        bash -c "$worker" "$work/inner")")
begun() { [[ -e $work/inner/run.0.0 ]]; }
wait_until 20 begun || fail "job $inner does not run"
login scancel -s USR1 "$inner"
requeued() { [[ $(login scontrol show job -o "$inner") == *' Restarts=1 '* ]]; }
wait_until 20 requeued || fail "job $inner is not requeued: $(login scontrol show job -o "$inner")"
for element in 0 1; do expect_untouched "$element"; done
login scancel "$inner"
end_all

rounds=2
((${DDPRUN_LONG:-0})) && rounds=20
say "three elements end in random ways at random moments ($rounds rounds)"
for ((round = 1; round <= rounds; ++round)); do
    submit "round$round" 0-2 '-N1 --time=30' --requeue-signal=USR1
    expect_run 0 1 0 1 2
    acts=()
    for element in 0 1 2; do
        case $((RANDOM % 3)) in
            0) acts+=(requeue); (sleep "0.$((RANDOM % 10))" && login scancel -s USR1 "${array}_$element") & ;;
            1) acts+=(complete); (sleep "0.$((RANDOM % 10))" && touch "$at.$element/end") & ;;
            2) acts+=(stay) ;;
        esac
    done
    wait
    story="${acts[*]}, in round $round"
    for element in 0 1 2; do
        case ${acts[element]} in
            requeue) expect "$element" Restarts 1 ;;
            complete) expect "$element" JobState COMPLETED ;;
        esac
    done
    for element in 0 1 2; do
        case ${acts[element]} in
            requeue) [[ $(wc -l <"$at.$element/told") == 1 ]] || fail "element $element was asked to stop more than once" ;;
            complete) is "$element" Restarts 0 && [[ ! -e $at.$element/told ]] || fail "element $element was touched" ;;
            stay) expect_untouched "$element" ;;
        esac
    done
    end_all
done

say "an element whose batch host is lost cancels its own allocation only"
submit headless 0-1 '-N2 --no-kill --exclusive' --nnodes=1:2 --lease=2 --last-call=1
expect_run 0 2 0 1
find_own
other=$((1 - own)) host=$(login scontrol show job -o "${array}_$own" | grep -o 'BatchHost=[^ ]*' | cut -d= -f2)
"$slurmlab" poweroff "$host"
expect_run 1 1 "$own"
login scontrol update nodename="$host" state=down reason=test
touch "$at.$own/end"
over() { [[ $(field "$own" JobState) != RUNNING ]]; }
wait_until 90 over || fail "element $own keeps its nodes: $(login squeue -r; cat "$at.$own.err")"
expect_untouched "$other"
touch "$at.$other/end"
expect "$other" JobState COMPLETED
rm -rf "$TMPDIR"/ddprun* # of the host that was lost
expect_nothing_left 10
