#!/usr/bin/env bash
# The file system below the ddprun binary hangs, and memory is short: the kernel drops the program's pages, and whoever
# needs one waits. Beats go on all the same, and keepers kill at the deadline: their pages are locked.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_root
need_built ddprun
need_program python3
need_program size
[[ -c /dev/fuse ]] || skip "no /dev/fuse here"

# A memory control group, version 1 or 2. What processes in it have read from files is dropped with it.
group=$(sed -n 's/^[0-9]*:memory:/\/sys\/fs\/cgroup\/memory/p' /proc/self/cgroup) reclaims=memory.force_empty
[[ -n $group ]] || { group=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup); reclaims=memory.reclaim; }
group=${group%/}/ddprun-$mark
mkdir "$group" 2>/dev/null || skip "no memory control group can be made here"
[[ -e $group/$reclaims ]] || { rmdir "$group"; skip "this kernel has no $reclaims"; }

mount=$work/mount
mkdir "$mount"
python3 "$e2e/one_file_fs.py" "$ddprun" "$mount" ddprun 2>"$work/mount.err" &
server=$!
clean_up() {
    kill -CONT "$server" 2>/dev/null
    marked | xargs -r kill -9
    wait_until 5 nothing_marked
    umount -l "$mount"
    wait_until 5 rmdir "$group" 2>/dev/null
}
nothing_marked() { [[ -z $(marked) ]]; }
wait_until 10 test -x "$mount/ddprun" || skip "the file system cannot be mounted: $(<"$work/mount.err")"
ddprun=$mount/ddprun

# All that is not locked or in use goes, as often as it is called.
drop_pages() { timeout 10 sh -c "echo 100M >'$group/$reclaims'" 2>/dev/null || true; }
keepers() { pgrep --parent "${pid[n0]},${pid[n1]}" -x job-keeper; }
# Kibibytes of the binary that both nodes and their keepers have in memory.
resident() {
    local id sum=0
    for id in "${pid[@]}" $(keepers); do
        sum=$((sum + $(awk '/^RssFile/ { print $2 }' "/proc/$id/status")))
    done
    echo "$sum"
}

say "the file system hangs for two leases: the job goes on"
at=$(free_port)
for rank in 0 1; do
    (
        echo "$BASHPID" >"$group/cgroup.procs"
        DDPRUN_TEST_MARK=$mark exec "$ddprun" --nnodes=2 --node-rank=$rank --lease=2 --rdzv-id="$mark" \
            --rdzv-endpoint="127.0.0.1:$at" sleep 334 >"$work/n$rank.out" 2>"$work/n$rank.err" </dev/null
    ) &
    pid[n$rank]=$!
done
wait_until 20 count_is "sleep 334" 2 || fail "the workers do not run"
# Two seconds after the start the rest of the program is read: its code and constants, in KiB, but for a tenth (what only
# says how to unwind is not fetched).
program=$(size "$ddprun" | awk 'NR == 2 { print int($1 / 1024 * 0.9) }')
all_is_read() {
    local node
    for node in n0 n1; do (($(awk '/^RssFile/ { print $2 }' "/proc/${pid[$node]}/status") > program)) || return; done
}
wait_until 20 all_is_read || fail "not all of the program is in memory"
before=$(resident)
kill -STOP "$server"
for ((i = 0; i < 20; i++)); do drop_pages; sleep 0.2; done
(($(resident) > before / 2)) || fail "of $before kB of the program only $(resident) kB are left in memory"
! has "$work/n0.err" lease && ! has "$work/n1.err" lease || fail "the lease has suffered"
count_is "sleep 334" 2 || fail "the workers do not run any more"

say "both ddpruns freeze, too: their keepers kill the workers and them at the deadline"
kill -STOP "${pid[n0]}" "${pid[n1]}"
wait_until 10 count_is "sleep 334" 0 || fail "workers outlive their deadline"
for node in n0 n1; do join $node 10; expect_code 137; done
wait_until 10 nothing_marked || fail "the keepers stay"
kill -CONT "$server"
