#!/usr/bin/env bash
# Nodes that are lost, as Slurm sees them, on a real cluster of four hosts. The test tells Slurm that a host is down, as
# a site's health check does. DDPRUN_LONG=1 waits until Slurm notices by itself, half a minute each time, and plays
# --headless=keep too.
source "$(dirname "${BASH_SOURCE[0]}")/slurm_common.sh"
need_built ddprun

long=${DDPRUN_LONG:-0}

export SLURMLAB_NODE_TIMEOUT=5 # seconds until Slurm asks a silent node; it gives up on the answer later
start_lab 4
cd "$work" # the ledger's folder is made in the working directory

# Submits a job: name, nodes, options of sbatch and srun, command of the step… Sets job, its id, and at, what its files
# begin with.
submit() {
    local name=$1 nodes=$2 options=$3; shift 3
    at=$work/$name
    : >"$at.done.begun"
    {
        echo '#!/bin/bash'
        echo "srun $options -N$nodes -n$nodes $(printf ' %q' "$@")"
        echo 'echo "code $?"'
    } >"$at.sbatch"
    # shellcheck disable=SC2086
    job=$(login sbatch --parsable $options -N"$nodes" -o "$at.out" -e "$at.err" "$at.sbatch")
}
# What Slurm says about the job.
shown() { login scontrol show job -o "$job" 2>/dev/null; }
shows() { [[ $(shown) =~ $1 ]]; }
# Waits until Slurm says this about the job: seconds, pattern.
expect_shown() {
    wait_until "$1" shows "$2" || fail "job $job is not $2: $(shown)"
}
# A worker writes its generation and host into FILE.begun and runs until FILE is there: FILE.
# shellcheck disable=SC2016
worker='echo "g$TORCHELASTIC_RESTART_COUNT $SLURMD_NODENAME" >>"$0.begun"; until [[ -e $0 ]]; do sleep 0.1; done'
begun() { (($(grep -cs "^g$1 " "$at.done.begun") == $2)); }
# Waits until so many workers of a generation have begun: generation, workers.
expect_begun() {
    wait_until 40 begun "$1" "$2" || fail "generation $1 has not $2 workers: $(cat "$at.done.begun" "$at.err")"
}
# Takes a host off, waits until the others go on, and tells Slurm (in a long run Slurm finds out): host.
lose() {
    "$slurmlab" poweroff "$1"
    expect_begun 1 2
    ((long)) || login scontrol update nodename="$1" state=down reason=test
}
end_recorded() { grep -qs '"all 2 workers of generation 1 succeeded"' .ddprun/*."$job".0/entry-*.json; }
# Removes the folders of hosts that are off; nobody could do so there.
forget_lost() { rm -rf "$TMPDIR"/ddprun*; }
# Takes a host on again and waits until it can start tasks on the others, and they on it: host.
starts_tasks() { "$slurmlab" on "$1" timeout 10 srun -N3 -w 'n[1-3]' true >/dev/null 2>&1; }
back() {
    "$slurmlab" poweron "$1"
    wait_until 30 starts_tasks "$1" || fail "$1 does not come back"
}

say "without --no-kill one warning says that a lost node will end the job"
submit said 2 "" "$ddprun" --lease=2 --nnodes=1:2 bash -c "$worker" "$work/said.done"
expect_begun 0 2
said() { grep -q 'sbatch --no-kill and srun --no-kill prevent that' "$at.err"; }
wait_until 20 said || fail "it is not said: $(<"$at.err")"
touch "$work/said.done"
expect_shown 20 'JobState=COMPLETED'
(($(grep -c 'no-kill' "$at.err") == 1)) || fail "said more than once"
expect_nothing_left 10

say "with --no-kill the job continues with the other nodes, also after Slurm has noticed"
submit lost 3 --no-kill "$ddprun" --lease=2 --nnodes=2:3 bash -c "$worker" "$work/lost.done"
expect_begun 0 3
lose n3
expect_shown 60 ' NodeList=n\[1-2\] '
touch "$work/lost.done"
expect_shown 20 'JobState=COMPLETED'
expect_in "$at.err" 'generation 1: 2 nodes, 2 workers'
end_recorded || fail "the end is not in the ledger: $(ls -d .ddprun/*)"
# Since 23.02 srun exits with 1 if a node was lost, whatever the codes of its tasks are.
[[ $(slurmd -V) == *' 22.05'* ]] && srun_code=0 || srun_code=1
expect_in "$at.out" "code $srun_code"
expect_in "$at.err" 'the job has ended after .* exit code 0: all 2 workers of generation 1 succeeded'
expect_not_in "$at.err" 'no-kill'
forget_lost
expect_nothing_left 10
back n3

say "nobody waits for a drained node: the others are too few, and end at once"
submit drained 3 --no-kill "$ddprun" --lease=2 bash -c "$worker" "$work/drained.done"
expect_begun 0 3
login scontrol update nodename=n3 state=drain reason=test
kill_tree "$(ddprun_on n3)"
# The leader asks Slurm at once, and again after a minute: on a loaded machine the first question may find no answer.
expect_shown 100 'JobState=(COMPLETED|FAILED)'
expect_in "$at.err" 'too few nodes: 2 of 3 nodes joined, missing n3; not waiting for n3 \(drain'
forget_lost
expect_nothing_left 10
login scontrol update nodename=n3 state=resume

say "the leader is killed but the batch host lives: the others finish, and the batch script ends the job"
submit script 3 --no-kill "$ddprun" --lease=2 --nnodes=2:3 bash -c "$worker" "$work/script.done"
expect_begun 0 3
kill_tree "$(ddprun_on n1)"
expect_begun 1 2
touch "$work/script.done"
expect_shown 30 'JobState=(COMPLETED|FAILED)'
expect_in "$at.out" 'code 137'
forget_lost
expect_nothing_left 10

say "the leader is lost before the last node has called: that node finds the others of the step"
# shellcheck disable=SC2016
submit late 3 --no-kill bash -c '[[ $SLURMD_NODENAME != n3 ]] || until [[ -e $0.go ]]; do sleep 0.1; done; exec "$@"' \
    "$work/late.done" "$ddprun" --verbose --lease=2 --nnodes=2:3 --last-call=10 bash -c "$worker" "$work/late.done"
ready() { grep -qs 'can take over' "$at.err"; } # said by n2, which n1 has welcomed
wait_until 20 ready || fail "n2 cannot take over: $(<"$at.err")"
kill_tree "$(ddprun_on n1)"
touch "$work/late.done.go"
# After five seconds without an answer n3 calls n2. No entry stands in the ledger yet, so nothing there names n2.
expect_begun 0 2
expect_in "$at.err" 'also calling other nodes of the job'
touch "$work/late.done"
expect_shown 30 'JobState=(COMPLETED|FAILED)'
forget_lost
expect_nothing_left 10

# Submits a job and takes its batch host off: name, option of ddprun. What srun prints is lost with it, so the stories
# look at files.
lose_batch_host() {
    submit "$1" 3 --no-kill "$ddprun" --lease=2 --nnodes=2:3 "$2" bash -c "$worker" "$work/$1.done"
    expect_begun 0 3
    lose n1
    touch "$work/$1.done"
}

say "the batch host is lost: the job continues, and cancels its allocation at the end"
lose_batch_host headless --headless=end
wait_until 20 end_recorded || fail "the end is not in the ledger: $(ls -d .ddprun/*)"
# The last step is COMPLETING until Slurm has given up on telling srun, a quarter of a minute. A short run does not
# wait.
((long)) && over='CANCELLED|COMPLETED' || over='CANCELLED|COMPLETED|COMPLETING'
expect_shown 90 "JobState=($over)"
forget_lost
expect_nothing_left 10
((long)) || exit 0
back n1

say "with --headless=keep the allocation stays"
lose_batch_host kept --headless=keep
wait_until 20 end_recorded || fail "the end is not in the ledger"
forget_lost
expect_nothing_left 20
shows 'JobState=RUNNING' || fail "it is ended: $(shown)"
login scancel "$job"
