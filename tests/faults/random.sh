# shellcheck shell=bash disable=SC2034,SC2154
# Random stories: two to four members, one or two spares, and up to three faults at random moments, drawn from a seed.
# Sourced by faults.sh.
#
# Nobody knows the last generation of such a story, but the promise must hold: no two generations run at once, every
# ddprun that lost nothing ends with 0, the result has the bits of an undisturbed run, and nothing is left.

# A number from first to last; one of these words; a host that still takes part. Sets drawn, because a subshell would
# draw the same numbers again and again.
draw() { drawn=$(($1 + RANDOM % ($2 - $1 + 1))); }
draw_word() { draw 1 $#; drawn=${!drawn}; }
draw_host() {
    local alive=() name
    for name in $(names 1 $((nodes + spares))); do
        [[ -n ${lost[$name]:-} ]] || alive+=("$name")
    done
    draw_word "${alive[@]}"
}

# The seconds of a fault or of the pause after it: from a fraction of a lease, which must harm nobody, to two leases.
pause() {
    draw 1 20
    sleep "$(awk "BEGIN { print $drawn * $lease / 10 }")"
}
tell_act() { acts_told+="$*, "; }
job_runs() {
    local name
    for name in "${!pid[@]}"; do ended "${pid[$name]}" || return 0; done
    return 1
}
nobody_runs() { ! job_runs; }
# A spare has no worker, and the job may have ended. Nothing is to be done then.
strike_if_there() { [[ -z $(processes "$3" "$2") ]] || strike "$@"; }

# The faults. Those that last end before the next one begins; a ddprun that was stopped or cut off for longer than the
# lease may end as a spare or with 69, so its code is not checked. At most two hosts are lost for good before they come
# back at the end.
random_fault() {
    local host words=(worker keeper freeze_worker freeze_agent cut deaf mute refuse reset reset_all) gone=0 name
    for name in "${!lost[@]}"; do [[ -z ${dead[$name]:-} ]] || gone=$((gone + 1)); done
    ((gone >= 2)) || words+=(agent all off)
    case $ledger_kind in small) words+=(fill) ;; disk) words+=(stall) ;; esac
    draw_host; host=$drawn
    draw_word "${words[@]}"
    tell_act "$drawn $host"
    case $drawn in
        worker | keeper) strike_if_there KILL "$drawn" "$host" ;;
        agent | all)
            dead[$host]=yes
            excuse "$host"
            strike_if_there KILL "$drawn" "$host"
            [[ $drawn != all ]] || rm -rf "$work/tmp.$host"/* # nobody is left there who would
            ;;
        off) dead[$host]=yes; act_off "$host" ;;
        freeze_*)
            excuse "$host"
            strike_if_there STOP "${drawn#freeze_}" "$host"
            local what=${drawn#freeze_}
            pause
            kill -CONT "${pid[$host]}" 2>/dev/null || true
            strike_if_there CONT "$what" "$host"
            ;;
        cut | deaf | mute | refuse)
            excuse "$host"
            "act_$drawn" "$host"
            pause
            act_heal "$host"
            ;;
        reset | reset_all) "act_$drawn" "$host" ;;
        fill) act_fill; pause; act_free ;;
        stall) act_stall; pause; act_flow ;;
    esac
}

# Power is back everywhere, and each host without a ddprun gets a new one, so that the job can go on. The job may end
# just then. A ddprun that comes too late finds nobody, waits for its join timeout, and its code is not checked.
restore() {
    local name patience=15
    job_runs || return 0
    for name in $(names 1 $((nodes + spares))); do
        if [[ -z ${init[$name]:-} ]]; then
            boot_host "$name"
        elif [[ -z ${lost[$name]:-} ]] || ! ended "${pid[$name]}"; then
            continue
        fi
        start_node "$name"
        excuse "$name"
    done
}

# Plays one: seed.
play_random() {
    declare -gA dead=()
    local count name
    RANDOM=$1
    set_defaults
    patience=120 pace=80 last=1000000 acts_told="" # 12 s without a fault
    draw 2 4; nodes=$drawn
    draw 1 2; spares=$drawn
    draw_word plain plain small disk; ledger_kind=$drawn
    draw 1 3; count=$drawn
    say "random $1 ($nodes nodes, $spares spares, ledger $ledger_kind)"
    need_calm "$nodes"
    start_job
    while ((count-- > 0)); do
        pause
        job_runs || break
        random_fault
        story="random $1: $acts_told"
    done
    restore
    echo "  $acts_told"
    wait_until 120 nobody_runs || fail "the job does not end"
    end_job
    clear_story
}
