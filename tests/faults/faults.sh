#!/usr/bin/env bash
# Real faults on real processes: jobs on several hosts (namespaces) meet the same faults as the jobs of the simulator,
# and must end with the same bits as an undisturbed run.
#
#   faults.sh               the cells of the normal run; with DDPRUN_LONG=1 all
#   faults.sh NAME...       these cells; a pattern (leader-*) names several
#   faults.sh --list        all cells, each with its acts
#   faults.sh --times N ... each N times, for the medians that it prints at the end
#   faults.sh --random N [SEED]  N random stories (random.sh), from this seed on; a long run has 40 of them
#
# cells.txt lists the cells, acts.sh knows the words in it, rendezvous/FAULTS.md says what a user sees in each.
if [[ -z ${FAULTS_INSIDE:-} ]] && unshare --net --mount --time true 2>/dev/null; then
    FAULTS_INSIDE=1 exec unshare --net --mount bash "$0" "$@"
fi
here=$(dirname "${BASH_SOURCE[0]}")
source "$here/../e2e/common.sh"
source "$here/hosts.sh"
source "$here/job.sh"
source "$here/acts.sh"
source "$here/random.sh"

# The lines of cells.txt without its comments.
cells() { grep -vE '^(#|$)' "$here/cells.txt"; }
# Prints the names of the cells to play: patterns…; without patterns those of this kind of run.
chosen() {
    local name run rest pattern found
    while IFS='| ' read -r name run rest; do
        [[ $# -gt 0 || $run == now || -n ${DDPRUN_LONG:-} ]] || continue
        found=$(($# == 0))
        # shellcheck disable=SC2053
        for pattern in "$@"; do [[ $name != $pattern ]] || found=1; done
        ((!found)) || echo "$name"
    done < <(cells)
}

# The defaults of a story; its line in cells.txt may set other values.
# shellcheck disable=SC2034 # they are for hosts.sh, job.sh, acts.sh and the table
set_defaults() {
    nodes=4 spares=1 lease=2 patience=30 expected=0 ledger_kind=plain clocks_apart=0 paused="" slow=""
    slow_seconds=${SLOW_SECONDS:-${DDPRUN_LONG:+600}}
    slow_seconds=${slow_seconds:-30}
    pace=40 last_pace=1 # milliseconds for each step: until the last generation, and in it
    last=0 struck=0 stalled=no took=()
}

# Plays one story: name. Sets took, the seconds of each wait that is measured.
tell() {
    local name run job acts word
    IFS='|' read -r name run job acts < <(cells | grep -E "^$1 +\|")
    set_defaults
    for word in $job; do declare -g "${word%%=*}=${word#*=}"; done
    [[ -z $slow ]] || pace=$((slow_seconds * 10)) # 150 steps then take one and a half times as long
    last=$(grep -o 'generation [0-9]*' <<<"$acts" | tail -n 1 | tr -dc 0-9 || true)
    last=${last:-0}
    say "$1"
    need_calm "$nodes"
    start_job
    IFS=, read -ra acts <<<"$acts"
    for word in "${acts[@]}"; do
        # shellcheck disable=SC2086
        act_${word# }
    done
    ((last > 0 || expected != 0)) || ! ended "${pid[n1]}" || fail "the job ended before the last of the faults"
    end_job
    clear_story
}
# Prints for each name the median of each column: file with lines of a name and its seconds.
medians() {
    awk '{ n[$1]++; if (NF > columns[$1]) columns[$1] = NF; for (i = 2; i <= NF; i++) v[$1, i, n[$1]] = $i; if (n[$1] == 1) order[++names] = $1 }
        END { for (j = 1; j <= names; j++) { name = order[j]; line = name ":"
            for (i = 2; i <= columns[name]; i++) {
                for (k = 1; k <= n[name]; k++) { x = v[name, i, k]; for (m = k - 1; m >= 1 && s[m] > x; m--) s[m + 1] = s[m]; s[m + 1] = x }
                line = line " " s[int((n[name] + 1) / 2)] }
            print line } }' "$1"
}
clean_up() { clear_story >/dev/null 2>&1; }

if [[ ${1:-} == --list ]]; then cells; exit; fi
times=1 random=0 seed=$EPOCHSECONDS
case ${1:-} in
    --times) times=$2; shift 2 ;;
    --random) random=$2 seed=${3:-$seed} random_only=yes; set -- ;;
    *) [[ $# -gt 0 || -z ${DDPRUN_LONG:-} ]] || random=40 ;;
esac
set_defaults
need_built ddprun
[[ -x $train ]] || skip "train is not built"
need_hosts
for ((turn = 0; turn < random; turn++)); do play_random $((seed + turn)); done
[[ -z ${random_only:-} ]] || exit 0
mapfile -t stories < <(chosen "$@")
((${#stories[@]})) || { echo "no cell has this name: $*; see $0 --list" >&2; exit 2; }
for name in "${stories[@]}"; do
    for ((turn = 0; turn < times; turn++)); do
        tell "$name"
        echo "$name ${took[*]+${took[*]}}" >>"$work/times"
    done
done
echo "name: seconds from the fault to each wait's end, the median of $times"
medians "$work/times"
