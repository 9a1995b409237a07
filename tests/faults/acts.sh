# shellcheck shell=bash disable=SC2034,SC2154
# What the table's words do: act_WORD for each. Sourced by faults.sh after hosts.sh and job.sh.

# The moment from which the next generation's wait is measured.
now() { struck=$EPOCHREALTIME; }

# ---- processes: agent, keeper, worker or all of them

act_kill() { # what, hosts…
    local what=$1 name; shift
    [[ $what == worker || $what == keeper ]] || excuse "$@"
    now
    for name in "$@"; do strike KILL "$what" "$name"; done
    # Nobody is left there who could remove its temporary folder.
    [[ $what != all ]] || for name in "$@"; do rm -rf "$work/tmp.$name"/*; done
}
act_freeze() { now; strike STOP "$@"; }
act_thaw() { # what, host
    kill -CONT "${pid[$2]}" 2>/dev/null || true # nsenter stops with its child
    strike CONT "$@"
}
act_give_up() { excuse "$@"; } # hosts whose agents will not see the end
act_join() { # hosts: a new ddprun on each
    local name
    for name in "$@"; do start_node "$name"; done
}

# ---- hosts and cables

act_off() { # hosts, at once
    local name
    excuse "$@"
    now
    for name in "$@"; do power_off "$name"; done
}
act_boot() { boot_host "$1"; act_join "$1"; }
act_cut() { now; unplug "$1"; }
act_deaf() { now; deaf "$1"; }
act_mute() { now; mute "$1"; }
act_refuse() { now; refusing "$1"; } # a firewall answers with resets whatever the others send it
act_split() { now; part "$@"; }
act_heal() {
    local name
    for name in "$@"; do plug_in "$name"; done
}
act_reset() { now; reset_links "$1" '( sport = :29500 or dport = :29500 )'; } # the agents' links only
act_reset_all() { now; reset_links "$1"; }
act_lossy() { # percent, of all hosts
    local name
    for name in "${!init[@]}"; do lossy "$name" "$1"; done
}

# ---- the ledger's folder

act_fill() { dd if=/dev/zero of="$ledger/fill" bs=4k 2>/dev/null || true; }
act_free() { now; rm -f "$ledger/fill"; }
act_stall() { fsfreeze --freeze "$ledger"; stalled=yes; }
act_flow() { now; fsfreeze --unfreeze "$ledger"; stalled=no; }
act_seal() { on "$1" mount -o remount,bind,ro "$ledger"; } # for that host alone
act_remove() { rm -rf "${ledger:?}"/*; }

# ---- time, and what is to be seen

act_hold() { sleep "$(awk "BEGIN { print $1 * $lease }")"; } # the length of a fault, in leases
act_load() { # busy loops on all processors, the job at nice 19 beside them; SLOW_SECONDS says how long (30; 600 in a long run)
    local id loops=()
    for id in $(marked); do renice -n 19 -p "$id" >/dev/null 2>&1 || true; done
    for ((id = 0; id < $(nproc); id++)); do
        timeout $((slow_seconds + 5)) sh -c 'while :; do :; done' &
        loops+=($!)
    done
    sleep "$slow_seconds"
    kill "${loops[@]}" 2>/dev/null || true
}
# Waits until the generation's workers have all begun, and notes how long after the last fault.
act_generation() { # number
    wait_until 40 begun "$1" || fail "generation $1 does not run"
    took+=("$(awk "BEGIN { printf \"%.2f\", $(sort -n "$folder/started.$1".* | tail -n 1) - $struck }")")
    [[ $1 != "$last" ]] || final=yes
}
act_spare() { wait_until 20 is_spare "$1" || fail "$1 does not come back"; } # host: the leader has a place for it to wait
act_says() { # host, words with _ for space
    wait_until 20 has "$work/$1.err" "${2//_/ }" || fail "$1 does not say \"${2//_/ }\""
}
act_workers_gone() { # hosts
    local name
    for name in "$@"; do wait_until 20 no_worker "$name" || fail "workers still run on $name"; done
    took+=("$(awk "BEGIN { printf \"%.2f\", $EPOCHREALTIME - $struck }")")
}
