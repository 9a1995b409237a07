#!/usr/bin/env bash
# Nodes that are lost, as Slurm sees them, on a real cluster of four hosts.
source "$(dirname "${BASH_SOURCE[0]}")/slurm_common.sh"
need_built ddprun

export SLURMLAB_NODE_TIMEOUT=5 # until Slurm notices
start_lab 4
cd "$work" # the ledger's folder is made in the working directory

login() { "$slurmlab" run env DDPRUN_TEST_MARK="$mark" "$@"; }
# Submits: name, nodes, options of sbatch and srun, words of the step… Sets job and at (its files).
submit() {
    local name=$1 nodes=$2 options=$3; shift 3
    at=$work/$name
    : >"$at.out"
    {
        echo '#!/bin/bash'
        echo "srun $options -N$nodes -n$nodes $(printf ' %q' "$@")"
        echo 'echo "code $?"'
    } >"$at.sbatch"
    # shellcheck disable=SC2086
    job=$(login sbatch --parsable $options -N"$nodes" -o "$at.out" -e "$at.err" "$at.sbatch")
}
shown() { login scontrol show job -o "$job" 2>/dev/null; }
shows() { [[ $(shown) =~ $1 ]]; }
expect_shown() { # seconds, pattern
    wait_until "$1" shows "$2" || fail "job $job is not $2: $(shown)"
}
# A worker that says which generation it is of, and waits until a file is there.
# shellcheck disable=SC2016
worker='echo "g$TORCHELASTIC_RESTART_COUNT $SLURMD_NODENAME"; until [[ -e $0 ]]; do sleep 0.1; done'
begun() { (($(grep -c "^g$1 " "$at.out") == $2)); }
expect_begun() { # generation, workers
    wait_until 40 begun "$1" "$2" || fail "generation $1 has not $2 workers: $(cat "$at.out" "$at.err")"
}
# The ddprun of a host.
ddprun_on() {
    local id
    for id in $(pgrep -x ddprun); do
        grep -qsz "^SLURMD_NODENAME=$1\$" "/proc/$id/environ" && grep -qsz "^SLURM_JOB_ID=$job\$" "/proc/$id/environ" &&
            grep -qsz "^DDPRUN_TEST_MARK=$mark\$" "/proc/$id/environ" && echo "$id"
    done
    true
}
# Of the hosts that are off: nobody could clean up there.
forget_lost() { rm -rf "$TMPDIR"/ddprun*; }

say "without --no-kill it is said, once, that a lost node will end the job"
submit said 2 "" "$ddprun" --lease=2 --nnodes=1:2 bash -c "$worker" "$work/said.done"
expect_begun 0 2
said() { grep -q 'sbatch --no-kill and srun --no-kill prevent that' "$at.err"; }
wait_until 20 said || fail "it is not said: $(<"$at.err")"
touch "$work/said.done"
expect_shown 20 'JobState=COMPLETED'
(($(grep -c 'no-kill' "$at.err") == 1)) || fail "said more than once"
expect_nothing_left 10

say "with --no-kill the job goes on with the others, after Slurm has noticed too"
submit lost 3 --no-kill "$ddprun" --lease=2 --nnodes=2:3 bash -c "$worker" "$work/lost.done"
expect_begun 0 3
"$slurmlab" poweroff n3
expect_begun 1 2
expect_shown 60 ' NodeList=n\[1-2\] '
touch "$work/lost.done"
expect_shown 20 'JobState=COMPLETED'
expect_in "$at.out" 'code 0'
expect_in "$at.err" 'generation 1: 2 nodes, 2 workers'
expect_not_in "$at.err" 'no-kill'
forget_lost
expect_nothing_left 10
"$slurmlab" poweron n3

say "a node that is drained is not waited for: the others are too few, and end at once"
submit drained 3 --no-kill "$ddprun" --lease=2 bash -c "$worker" "$work/drained.done"
expect_begun 0 3
login scontrol update nodename=n3 state=drain reason=test
kill_tree "$(ddprun_on n3)"
expect_shown 30 'JobState=(COMPLETED|FAILED)'
expect_in "$at.err" 'too few nodes: 2 of 3 nodes joined, missing n3; it is not waited for n3 \(drain'
forget_lost
expect_nothing_left 10
login scontrol update nodename=n3 state=resume
