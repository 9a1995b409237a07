#!/usr/bin/env bash
# The file system below the ddprun binary hangs, and memory is short: the kernel drops the program's pages, and whoever
# needs one waits. Beats go on all the same, and keepers kill at the deadline: their pages are locked.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_root
need_built ddprun
need_built ddpctl
need_program python3
need_program size
need_program nm
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

say "the file system hangs for two leases: the job goes on"
at=$(free_port)
(umask 77 && head -c 32 /dev/urandom | base64 >"$work/secret")
for rank in 0 1; do
    (
        echo "$BASHPID" >"$group/cgroup.procs"
        DDPRUN_TEST_MARK=$mark exec "$ddprun" --nnodes=2 --node-rank=$rank --lease=2 --rdzv-id="$mark" \
            --rdzv-endpoint="127.0.0.1:$at" --secret-file="$work/secret" sleep 334 >"$work/n$rank.out" 2>"$work/n$rank.err" </dev/null
    ) &
    pid[n$rank]=$!
done
wait_until 20 count_is "sleep 334" 2 || fail "the workers do not run"
# Two seconds after the start the rest of the program is read: its code and constants, in KiB, without what is seldom used
# (base/system/locked_program.h), and but for a tenth.
mark_at() { echo $((16#$(nm "$bin/ddprun" | awk -v name="ddprun_seldom_$1" '$3 == name { print $1 }'))); }
seldom=0
for part in code constants frames; do seldom=$((seldom + $(mark_at ${part}_end) - $(mark_at ${part}_begin))); done
program=$(size "$bin/ddprun" | awk -v seldom="$seldom" 'NR == 2 { print int(($1 - seldom) / 1024 * 0.9) }')
status_of() { awk -v name="$2:" '$1 == name { print $2 }' "/proc/$1/status"; }
locked_and_read() { (($(status_of "$1" VmLck) > program && $(status_of "$1" RssFile) > program)); }
# What the start has used of the seldom used part counts, too, until it is let go of; so more than one look.
looks=0
all_is_read() {
    if locked_and_read "${pid[n0]}" && locked_and_read "${pid[n1]}"; then ((++looks)); else looks=0; fi
    ((looks > 20))
}
wait_until 20 all_is_read || fail "not all of the program is in memory"
kill -STOP "$server"
for ((i = 0; i < 20; i++)); do drop_pages; sleep 0.2; done
for node in n0 n1; do
    locked_and_read "${pid[$node]}" ||
        fail "of the program only $(status_of "${pid[$node]}" RssFile) of $program kB are left in memory"
done
! has "$work/n0.err" lease && ! has "$work/n1.err" lease || fail "the lease has suffered"
count_is "sleep 334" 2 || fail "the workers do not run any more"

say "an operator has to wait until the file system is there again, and nobody else"
timeout 5 "$bin/ddpctl" status --rdzv-endpoint="127.0.0.1:$at" --rdzv-id="$mark" --secret-file="$work/secret" \
    >"$work/ctl.out" 2>"$work/ctl.err" </dev/null && fail "an operator is answered by code that cannot be read"
! has "$work/n0.err" lease && ! has "$work/n1.err" lease || fail "the lease has suffered from an operator"
count_is "sleep 334" 2 || fail "the workers do not run any more after an operator's call"

say "both ddpruns freeze, too: their keepers kill the workers and them at the deadline"
kill -STOP "${pid[n0]}" "${pid[n1]}"
wait_until 10 count_is "sleep 334" 0 || fail "workers outlive their deadline"
for node in n0 n1; do join $node 10; expect_code 137; done
wait_until 10 nothing_marked || fail "the keepers stay"
kill -CONT "$server"
