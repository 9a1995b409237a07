#!/usr/bin/env bash
# An endpoint that is an address of each host, on three hosts made of namespaces, with variables of a step as
# srun sets them: the nodes are one job all the same. Each took itself for the leader, and three jobs trained at once.
if [[ -z ${FAULTS_INSIDE:-} ]] && unshare --net --mount --time true 2>/dev/null; then
    FAULTS_INSIDE=1 exec unshare --net --mount bash "$0" "$@"
fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/common.sh"
source "$here/../faults/hosts.sh"
need_built ddprun
need_hosts
ledger=$work/ledger
mkdir "$ledger"
clean_up() {
    local name
    for name in "${!init[@]}"; do kill -KILL "${init[$name]}"; done
}

names=(n1 n2 n3)
for name in "${names[@]}"; do
    boot_host "$name"
    # A bridge with a container on it.
    on "$name" sh -c 'mount -t sysfs none /sys
        ip link add docker0 type bridge; ip link add c0 type veth peer name c1; ip link set c0 master docker0
        ip addr add 172.17.0.1/16 dev docker0; ip link set docker0 up; ip link set c0 up; ip link set c1 up' ||
        skip "no bridge to be had on a host here"
done

# Starts ddprun on a host: name, options…
node() {
    local name=$1 id=$((${1#n} - 1)); shift
    enter "$name"
    : >"$work/$name.err"
    DDPRUN_TEST_MARK=$mark TMPDIR=$work/tmp.$name "${entered[@]}" env "${step[@]}" \
        "SLURM_NODEID=$id" "SLURM_PROCID=$id" "$ddprun" --nnodes=1:3 --ledger="$where" --identity=none --lease=2 \
        --rdzv-endpoint="$endpoint:29500" "$@" \
        bash -c 'echo "rank $RANK of $WORLD_SIZE"' >"$work/$name.out" 2>"$work/$name.err" </dev/null &
    pid[$name]=$!
}
# Whether a ddprun on a host listens at the port of the endpoint.
opened() { on "$1" grep -q ':733C 0[0-9A-F:]* 0A ' /proc/net/tcp6; }
all_end() { for name in "${names[@]}"; do join "$name" 60; expect_code "$1"; done; }

say "in a step its first node leads, and a line says why"
endpoint=172.17.0.1 where=memory
step=(SLURM_JOB_ID=88 SLURM_JOB_NODELIST='10.78.0.[1-3]' SLURM_JOB_NUM_NODES=3 SLURM_STEP_ID=0
    SLURM_STEP_NODELIST='10.78.0.[1-3]' SLURM_STEP_NUM_NODES=3 SLURM_STEP_NUM_TASKS=3 'SLURM_STEP_TASKS_PER_NODE=1(x3)'
    SLURM_NNODES=3 SLURM_NTASKS=3 SLURM_LOCALID=0)
for name in "${names[@]}"; do node "$name" --nproc-per-node=1; done
all_end 0
(($(cat "$work"/n?.out | grep -c 'of 3$') == 3)) || fail "they are not one job of three"
(($(cat "$work"/n?.err | grep -c 'is an address of docker0, a bridge that each host has for itself') == 1)) ||
    fail "it is not said once"

say "a node without such a bridge finds the others"
on n3 ip link del docker0
for name in "${names[@]}"; do node "$name" --nproc-per-node=1 --last-call=20; done
all_end 0
(($(cat "$work"/n?.out | grep -c 'of 3$') == 3)) || fail "they are not one job of three"

say "an address of each host, as behind NAT: those who lead find each other before the first generation"
endpoint=10.0.2.15
for name in "${names[@]}"; do on "$name" ip addr add $endpoint/32 dev eth0; done
for order in "n1 n2 n3" "n3 n2 n1"; do
    for name in $order; do
        node "$name" --nproc-per-node=1 --last-call=0.1
        wait_until 10 opened "$name" || fail "$name opens no meeting point"
    done
    all_end 0
    (($(cat "$work"/n?.out | grep -c 'of 3$') == 3)) || fail "they are not one job of three ($order)"
done
expect_in "$work/n3.err" 'the endpoint is an address of node 10.78.0.[12], too, which leads; this node stops leading'

say "the same with a ledger that all share"
where=directory:$ledger
for name in n3 n1 n2; do node "$name" --nproc-per-node=1 --last-call=0.1; done
all_end 0
(($(cat "$work"/n?.out | grep -c 'of 3$') == 3)) || fail "they are not one job of three"
where=memory

say "one that never comes is not waited for longer than 5 s"
for name in n1 n2; do node "$name" --nproc-per-node=1 --last-call=0.1; done
for name in n1 n2; do join "$name" 20; expect_code 0; done
(($(cat "$work"/n[12].out | grep -c 'of 2$') == 2)) || fail "they are not one job of two"

say "elsewhere nobody knows who is meant: each node says it"
endpoint=172.17.0.1
step=(SLURM_NOTHING=1)
node n1 --nproc-per-node=1 --last-call=0.1
join n1 60
expect_code 0
expect_in "$work/n1.err" 'is an address of docker0, a bridge to containers or virtual machines of this host'

say "a bridge with a card of the host is none"
on n1 sh -c 'ip link add link c1 name card type macvlan; ip link set card master docker0' ||
    skip "no macvlan to be had here"
node n1 --nproc-per-node=1 --last-call=0.1
join n1 60
expect_code 0
expect_not_in "$work/n1.err" 'a bridge'
