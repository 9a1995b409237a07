# shellcheck shell=bash disable=SC2034,SC2154
# Hosts of our own on one machine, and what can happen to them. Sourced after e2e/common.sh.
#
# A host is a set of namespaces: network (a cable to one bridge), processes, host name, mounts, boot clock. It shares with
# the others the kernel, the processors, the files (unless a story mounts one for itself) and the wall clock, of which Linux
# has one for all. Process 1 of a host is a shell that only reaps: when it is killed, the kernel kills all of that host at one
# stroke. Everything lies in a network namespace of this run, so that runs are in nobody's way and leave nothing behind.

declare -A init booted # of a host: the machine's id of its process 1; seconds its boot clock is ahead
address() { echo "10.78.0.${1#n}"; }

# In a network namespace of this run (faults.sh goes there first) that has only the bridge.
need_hosts() {
    need_root
    need_program nft
    need_program ip
    [[ -n ${FAULTS_INSIDE:-} ]] || skip "no namespaces to be had here"
    ip link set lo up
    ip link add hosts type bridge forward_delay 0 || skip "no network bridge to be had here"
    ip link set hosts up
}

boot_host() { # name, [seconds that its boot clock is ahead]
    local name=$1 starter
    booted[$name]=${2:-${booted[$name]:-0}}
    # shellcheck disable=SC2016
    unshare --net --uts --mount --pid --fork --mount-proc --time --boottime "${booted[$name]}" --monotonic "${booted[$name]}" \
        bash -c 'hostname "$1"; trap "" TERM INT; while :; do sleep 1000 & wait; done' host "$name" </dev/null >/dev/null 2>&1 &
    starter=$!
    disown "$starter"
    is_up() { init[$name]=$(pgrep -P "$starter") && [[ $(on "$name" hostname 2>/dev/null) == "$name" ]]; }
    wait_until 10 is_up || fail "host $name does not start"
    ip link add "$name" type veth peer name eth0 netns "${init[$name]}"
    ip link set "$name" master hosts up
    on "$name" sh -c "ip link set lo up; ip addr add $(address "$name")/24 dev eth0; ip link set eth0 up
        mount --bind '$ledger' '$ledger'"
    mkdir -p "$work/tmp.$name"
}
enter() { entered=(nsenter --target "${init[$1]}" --net --uts --mount --pid --time --); }
on() {
    enter "$1"
    "${entered[@]}" "${@:2}"
}
is_gone() { [[ ! -d /proc/$1 ]]; }

# The cable first, so that no word leaves the host; what its folder for temporary files held is gone with it.
power_off() { # name
    ip link del "$1"
    kill -KILL "${init[$1]}"
    wait_until 10 is_gone "${init[$1]}" || fail "host $1 does not stop"
    rm -rf "$work/tmp.$1"
    unset "init[$1]"
}
unplug() { ip link set "$1" down; }
plug_in() {
    ip link set "$1" up
    on "$1" nft flush ruleset
}
rules_of() { # name, rules…: what its own firewall does from now on
    local name=$1; shift
    on "$name" nft "add table inet faults; add chain inet faults in { type filter hook input priority 0; }
        add chain inet faults out { type filter hook output priority 0; }; $*"
}
deaf() { rules_of "$1" 'add rule inet faults in iifname eth0 drop'; }
mute() { rules_of "$1" 'add rule inet faults out oifname eth0 drop'; }
refusing() { rules_of "$1" 'add rule inet faults in iifname eth0 meta l4proto tcp reject with tcp reset'; }
lossy() { rules_of "$1" "add rule inet faults in iifname eth0 numgen random mod 100 < $2 drop"; }
# Two groups that do not hear each other: all names of one.
part() {
    local name other
    for name in "$@"; do
        for other in "${!init[@]}"; do
            [[ " $* " == *" $other "* ]] || rules_of "$name" "add rule inet faults in ip saddr $(address "$other") drop
                add rule inet faults out ip daddr $(address "$other") drop"
        done
    done
}
# Connections of a host are reset, as by a router that has lost its table: name, filter of ss (none: all).
reset_links() { on "$1" ss -K -H state established "${@:2}" >/dev/null 2>&1 || true; }

# The machine's ids of a host's processes: name, and agent, keeper, worker or all. Its process 1 and what that waits for are not counted.
processes() {
    local id name here
    here=$(readlink "/proc/${init[$1]}/ns/pid")
    for id in $(marked); do
        [[ $(readlink "/proc/$id/ns/pid" 2>/dev/null) == "$here" ]] || continue
        name=$(<"/proc/$id/comm") 2>/dev/null || continue
        case $2:$name in
            all:* | agent:ddprun | keeper:ddprun-keeper | worker:train) echo "$id" ;;
        esac
    done
}
# Sends a signal to all such processes at once: signal, agent, keeper, worker or all, name.
strike() {
    local ids
    ids=$(processes "$3" "$2")
    [[ -n $ids ]] || fail "no $2 runs on $3"
    # shellcheck disable=SC2086
    kill -"$1" $ids 2>/dev/null || true
}
