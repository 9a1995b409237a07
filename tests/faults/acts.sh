# shellcheck shell=bash disable=SC2034,SC2154
# What the words of cells.txt do: act_WORD for each WORD. Sourced by faults.sh after hosts.sh and job.sh.

# Notes the moment from which the next wait is measured.
now() { struck=$EPOCHREALTIME; }

# ---- processes: agent, keeper, worker or all of them

# SIGKILL: what, hosts… A ddprun whose worker or keeper is killed lives on.
act_kill() {
    local what=$1 name; shift
    [[ $what == worker || $what == keeper ]] || excuse "$@"
    now
    for name in "$@"; do strike KILL "$what" "$name"; done
    # Nobody is left on the host to remove its temporary folder.
    [[ $what != all ]] || for name in "$@"; do rm -rf "$work/tmp.$name"/*; done
}
# SIGSTOP, and later SIGCONT: what, host.
act_freeze() { now; strike STOP "$@"; }
act_thaw() {
    kill -CONT "${pid[$2]}" 2>/dev/null || true # nsenter stops with its child
    strike CONT "$@"
}
# These agents do not live to the end of the job: hosts…
act_give_up() { excuse "$@"; }
# Starts a new ddprun on each host: hosts…
act_join() {
    local name
    for name in "$@"; do start_node "$name"; done
}

# ---- hosts and cables

# No power: hosts…, all at the same moment.
act_off() {
    local name
    excuse "$@"
    now
    for name in "$@"; do power_off "$name"; done
}
# Power is back, and a new ddprun starts: host.
act_boot() { boot_host "$1"; act_join "$1"; }
# Faults of a cable or a firewall (hosts.sh), until act_heal: host, or the hosts of one group.
act_cut() { now; unplug "$1"; }
act_deaf() { now; deaf "$1"; }
act_mute() { now; mute "$1"; }
act_refuse() { now; refusing "$1"; } # a firewall answers everything with resets
act_split() { now; part "$@"; }
act_heal() {
    local name
    for name in "$@"; do plug_in "$name"; done
}
act_reset() { now; reset_links "$1" '( sport = :29500 or dport = :29500 )'; } # the agents' links only
act_reset_all() { now; reset_links "$1"; }
# Every host loses so much of what comes in: percent.
act_lossy() {
    local name
    for name in "${!init[@]}"; do lossy "$name" "$1"; done
}

# ---- the ledger's folder

act_fill() { dd if=/dev/zero of="$ledger/fill" bs=4k 2>/dev/null || true; }
act_free() { now; rm -f "$ledger/fill"; }
act_stall() { fsfreeze --freeze "$ledger"; stalled=yes; }
act_flow() { now; fsfreeze --unfreeze "$ledger"; stalled=no; }
act_seal() { on "$1" mount -o remount,bind,ro "$ledger"; } # read-only, for that host alone
act_remove() { rm -rf "${ledger:?}"/*; }

# ---- time, load, and what must be seen

act_hold() { sleep "$(awk "BEGIN { print $1 * $lease }")"; } # the length of a fault, in leases
# Runs busy loops on all processors, with the job at nice 19 beside them. SLOW_SECONDS says how long (30; 600 in a long
# run).
act_load() {
    local id loops=()
    for id in $(marked); do renice -n 19 -p "$id" >/dev/null 2>&1 || true; done
    for ((id = 0; id < $(nproc); id++)); do
        timeout $((slow_seconds + 5)) sh -c 'while :; do :; done' &
        loops+=($!)
    done
    sleep "$slow_seconds"
    kill "${loops[@]}" 2>/dev/null || true
}
# Waits until all workers of a generation have begun, and notes how long after the fault that was: generation.
act_generation() {
    wait_until 40 begun "$1" || fail "generation $1 does not run"
    took+=("$(awk "BEGIN { printf \"%.2f\", $(sort -n "$folder/started.$1".* | tail -n 1) - $struck }")")
    [[ $1 != "$last" ]] || final=yes
}
# Waits until a host is back as a spare: host.
act_spare() { wait_until 20 is_spare "$1" || fail "$1 does not come back"; }
# Waits until a ddprun logs this: host, words with _ for space.
act_says() {
    wait_until 20 has "$work/$1.err" "${2//_/ }" || fail "$1 does not say \"${2//_/ }\""
}
# Waits until no worker runs on these hosts, and notes how long after the fault that was: hosts…
act_workers_gone() {
    local name
    for name in "$@"; do wait_until 20 no_worker "$name" || fail "workers still run on $name"; done
    took+=("$(awk "BEGIN { printf \"%.2f\", $EPOCHREALTIME - $struck }")")
}
