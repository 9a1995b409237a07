# shellcheck shell=bash disable=SC2034,SC2154
# A real Slurm cluster for an end-to-end test, taken down at its end. Sourced in place of common.sh.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_root
need_program slurmctld
need_program munged
need_program ip

# Nodes of one worker each print as a worker of its own would: no label. slurm_forms.sh tests the labels under Slurm.
export PET_NO_LABEL=1
export SLURMLAB_DIR=$work/lab SLURMLAB_FOR=$$
lab_is_up=no
clean_up() { [[ $lab_is_up == no ]] || "$slurmlab" down; }
# Starts the cluster: number of hosts, GPUs on each.
start_lab() {
    if ! "$slurmlab" up "$@" >"$work/up.out" 2>&1; then
        cat "$work"/lab/log/*.log >>"$work/up.out" 2>/dev/null || true
        fail "the cluster does not start"
    fi
    lab_is_up=yes
}

# Runs a command on the login node.
login() { "$slurmlab" run env DDPRUN_TEST_MARK="$mark" "$@"; }
# Whether all nodes are idle. Those of the last job may still be completing; then the next job would get other nodes.
idle() { [[ $("$slurmlab" run sinfo -h -o %t | sort -u) == idle ]]; }
# Runs a command on the login node to its end: seconds, command… Sets code.
lab() {
    local seconds=$1 begin; shift
    wait_until 20 idle || fail "the cluster is not idle"
    begin=$SECONDS code=0
    timeout --kill-after=5 "$seconds" "$slurmlab" run env DDPRUN_TEST_MARK="$mark" "$@" \
        >"$work/run.out" 2>"$work/run.err" </dev/null || code=$?
    in_time "$seconds" "$begin" || fail "not done in $seconds s"
}
# Runs a batch script to its end: seconds, options of sbatch, script. Sets code, for an array the highest one. sbatch
# --wait would do the same, but it looks only every two to ten seconds.
lab_batch() {
    local id
    wait_until 20 idle || fail "the cluster is not idle"
    id=$(login sbatch --parsable "${@:2}" 2>"$work/run.err" </dev/null) || fail "not submitted"
    wait_until "$1" none_queued || fail "not done in $1 s: $(login squeue)"
    code=$(login scontrol -o show job "$id" | sed -n 's/.* ExitCode=\([0-9]*\):\([0-9]*\) .*/\1 \2/p' |
        awk '{ print $2 ? 128 + $2 : $1 }' | sort -n | tail -n 1)
    [[ -n $code ]] || fail "job $id has no code: $(login scontrol -o show job "$id")"
}
# Tells several stories at once; their jobs share the hosts: names of functions. Each has a mark and a folder of its
# own.
side_by_side() {
    local story playing=() failed=no
    for story in "$@"; do
        (
            mark+=-$story work+=/$story
            export TMPDIR=$work/tmp
            mkdir -p "$TMPDIR"
            cd "$work"
            "$story"
        ) &
        playing+=($!)
    done
    for story in "${playing[@]}"; do wait "$story" || failed=yes; done
    [[ $failed == no ]] || exit 1
}
# Process ids of the ddprun of $job on a host: host. Another lab may have a host and a job of the same names, so the
# mark decides.
ddprun_on() {
    local id
    for id in $(pgrep -x ddprun); do
        grep -qsz "^SLURMD_NODENAME=$1\$" "/proc/$id/environ" && grep -qsz "^SLURM_JOB_ID=$job\$" "/proc/$id/environ" &&
            grep -qsz "^DDPRUN_TEST_MARK=$mark\$" "/proc/$id/environ" && echo "$id"
    done
    true
}
# Whether no job is left in the queue.
none_queued() { [[ -z $("$slurmlab" run squeue -h 2>&1) ]]; }
