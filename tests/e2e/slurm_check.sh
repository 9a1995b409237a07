#!/usr/bin/env bash
# srun ddprun --check on a real Slurm of four hosts: a healthy allocation passes, and each fault is found and named. A
# clock that is wrong is played in tests/launcher, because Linux has one clock for all hosts.
source "$(dirname "${BASH_SOURCE[0]}")/slurm_common.sh"
need_built ddprun
need_program nft
need_program jq

start_lab 4 4
cd "$work"
net=${SLURMLAB_NET:-10.77.0}

# Runs a check on all four nodes: seconds, options of srun, then -- and options of ddprun. Sets code.
check() {
    local seconds=$1 begin=$SECONDS options=(); shift
    while [[ $# -gt 0 && $1 != -- ]]; do options+=("$1"); shift; done
    code=0
    timeout --kill-after=5 "$seconds" "$slurmlab" run env DDPRUN_TEST_MARK="$mark" \
        srun -N4 --ntasks-per-node=1 "${options[@]}" "$ddprun" --check "${@:2}" \
            >"$work/run.out" 2>"$work/run.err" </dev/null || code=$?
    in_time "$seconds" "$begin" || fail "not done in $seconds s"
    expect_nothing_left 5
}
# Checks that exactly these rows of the table are WRONG: names of rows.
only_wrong() {
    [[ $(awk '$2 == "WRONG" {print $1}' "$work/run.out" | tr '\n' ' ') == "$* " ]] || fail "wrong is not $*"
}
# Runs a command in the file tree that the slurmd of a host, and so every step there, sees: host, command…
in_tree() {
    local pid
    pid=$(cat "$SLURMLAB_DIR/run/slurmd-$1.pid")
    nsenter --target "$pid" --mount "${@:2}"
}

say "a healthy allocation: nothing is wrong, and nothing is left"
check 60
expect_code 0
expect_in "$work/run.out" '^ddprun has checked n\[1-4\] in '
expect_in "$work/run.out" '^  nodes +ok +4 of 4 have met at n1$'
expect_in "$work/run.out" '^  network +ok +12 of 12 connections between nodes$'
expect_in "$work/run.out" '^  ledger +ok +directory:.*/\.ddprun/slurmlab\.[0-9]*\.0\.check$'
expect_in "$work/run.out" '^  requeue +ok +Slurm holds a requeued job for 121 s'
expect_in "$work/run.out" '^Nothing is wrong\.$'
[[ ! -e $work/.ddprun ]] || fail "the check has left its ledger"
[[ ! -s $work/run.err ]] || fail "something else was said"

say "the same as JSON"
check 60 -- --check=json
expect_code 0
[[ $(jq -r '"\(.format) \(.version) \(.good) \(.nodes | join(",")) \(.checks | length)"' "$work/run.out") == \
    "ddprun check 1 true n1,n2,n3,n4 10" ]] || fail "not what it should be"

say "two nodes do not reach each other, though both reach the first"
"$slurmlab" on n2 nft "add table inet cut; add chain inet cut in { type filter hook input priority 0; }
    add rule inet cut in ip saddr $net.3 drop"
check 60
"$slurmlab" on n2 nft flush ruleset
expect_code 69
only_wrong network
expect_in "$work/run.out" '10 of 12 connections'
expect_in "$work/run.out" "n2 and n3 do not reach each other: $net\.3: no answer within 5 s; .*firewall"

say "a node that does not reach the first is reported as missing, and says so itself"
# --ports fixes the port, so that the rule can name it.
"$slurmlab" on n4 nft "add table inet cut; add chain inet cut out { type filter hook output priority 0; }
    add rule inet cut out tcp dport 24000 drop"
check 60 -- --ports=24000-24000 --last-call=3
"$slurmlab" on n4 nft flush ruleset
expect_code 69
only_wrong nodes
expect_in "$work/run.out" '3 of 4 have met at n1'
expect_in "$work/run.out" 'n4 did not come in time'
expect_in "$work/run.err" 'n4.*n1'

say "one node sees another folder"
mkdir -p "$work/.ddprun/of-another-job" # so that the folder stays
in_tree n3 mount -t tmpfs none "$work/.ddprun"
check 60
in_tree n3 umount "$work/.ddprun"
expect_code 69
only_wrong ledger
expect_in "$work/run.out" "n3: cannot see the leader's ledger: .*give --ledger=directory:PATH"

say "the program is looked for on every node, but it is not run"
check 60 -- touch "$work/ran"
expect_code 0
[[ ! -e $work/ran ]] || fail "the program ran"
check 60 -- ./no-such-program
expect_code 69
only_wrong workers
expect_in "$work/run.out" 'n1, n2, n3 and 1 more: program \./no-such-program: No such file'

say "one node lacks a GPU, and another cannot open its GPUs"
# The driver's folder is made up: four GPUs on each node, three on n2.
for host in n1 n2 n3 n4; do
    in_tree "$host" mount -t tmpfs none /proc/driver
    for ((i = 0; i < 4; i++)); do
        [[ $host == n2 && $i == 3 ]] || in_tree "$host" mkdir -p "/proc/driver/nvidia/gpus/0000:0$i:00.0"
    done
done
for ((i = 0; i < 4; i++)); do
    # A number that no device has.
    in_tree n4 sh -c "echo 'Device Minor:    97$i' >/proc/driver/nvidia/gpus/0000:0$i:00.0/information"
done
check 60 --gpus-per-node=4
expect_code 69
only_wrong gpus
expect_in "$work/run.out" 'n2: Slurm gives 4 GPUs, but the driver shows 3; '
expect_in "$work/run.out" 'n4: only 0 of 4 GPUs can be opened \(/dev/nvidia973: No such file'

say "a layout that cannot work is refused as at a start"
code=0
"$slurmlab" run srun -N2 --ntasks-per-node=2 "$ddprun" --check >"$work/run.out" 2>"$work/run.err" || code=$?
expect_code 2
expect_in "$work/run.err" 'ntasks-per-node=1'
