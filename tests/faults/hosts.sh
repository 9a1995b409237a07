# shellcheck shell=bash disable=SC2034,SC2154
# Hosts on one machine, made of namespaces, and what can happen to them. Sourced after e2e/common.sh.
#
# A host has its own namespaces for the network (a cable to one bridge), processes, host name, mounts and boot clock. It
# shares the kernel, the processors, the files (unless a story mounts something for one host) and the wall clock, of
# which Linux has only one. Process 1 of a host is a shell that only reaps. When it is killed, the kernel kills
# everything on that host at once. All hosts lie in a network namespace of this run, so runs do not disturb each other
# and leave nothing behind.

declare -A init booted # by host: process id of its process 1 on this machine; seconds that its boot clock is ahead
address() { echo "10.78.0.${1#n}"; }

# Makes the bridge, the only device in the network namespace of this run (faults.sh enters it first).
need_hosts() {
    need_root
    need_program nft
    need_program ip
    [[ -n ${FAULTS_INSIDE:-} ]] || skip "no namespaces to be had here"
    ip link set lo up
    ip link add hosts type bridge forward_delay 0 || skip "no network bridge to be had here"
    ip link set hosts up
}

# Starts a host: name, [seconds that its boot clock is ahead].
boot_host() {
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
# Sets entered, the words before a command that is to run on a host: host.
enter() { entered=(nsenter --target "${init[$1]}" --net --uts --mount --pid --time --); }
# Runs a command on a host: host, command…
on() {
    enter "$1"
    "${entered[@]}" "${@:2}"
}
is_gone() { [[ ! -d /proc/$1 ]]; }

# Takes a host off: name. The cable goes first, so that nothing leaves the host any more. Its temporary files are gone,
# too.
power_off() {
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
# Sets what the firewall on a host does from now on: name, rules…
rules_of() {
    local name=$1; shift
    on "$name" nft "add table inet faults; add chain inet faults in { type filter hook input priority 0; }
        add chain inet faults out { type filter hook output priority 0; }; $*"
}
# In turn: what comes in is lost; what goes out is lost; what comes in is answered by a reset; so many percent are lost.
deaf() { rules_of "$1" 'add rule inet faults in iifname eth0 drop'; }
mute() { rules_of "$1" 'add rule inet faults out oifname eth0 drop'; }
refusing() { rules_of "$1" 'add rule inet faults in iifname eth0 meta l4proto tcp reject with tcp reset'; }
lossy() { rules_of "$1" "add rule inet faults in iifname eth0 numgen random mod 100 < $2 drop"; }
# Makes two groups of hosts that do not hear each other: the names of one group.
part() {
    local name other
    for name in "$@"; do
        for other in "${!init[@]}"; do
            [[ " $* " == *" $other "* ]] || rules_of "$name" "add rule inet faults in ip saddr $(address "$other") drop
                add rule inet faults out ip daddr $(address "$other") drop"
        done
    done
}
# Resets connections of a host, as a router does that has lost its table: name, filter of ss (none: all connections).
reset_links() { on "$1" ss -K -H state established "${@:2}" >/dev/null 2>&1 || true; }

# Process ids on this machine of the processes of a host: name, then agent, keeper, worker or all. Process 1 and its
# sleep have no mark, so they do not count.
processes() {
    local id name here
    here=$(readlink "/proc/${init[$1]}/ns/pid")
    for id in $(marked); do
        [[ $(readlink "/proc/$id/ns/pid" 2>/dev/null) == "$here" ]] || continue
        name=$(<"/proc/$id/comm") 2>/dev/null || continue
        case $2:$name in
            all:* | agent:ddprun | keeper:job-keeper | worker:train) echo "$id" ;;
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
