#!/usr/bin/env bash
# What a generation left in shared memory is gone before the next one starts, and in sockets of the libraries' soon after; at the end and after a
# SIGKILL of ddprun; what others have there, and what a worker gave a name of its own, stays. 50 times with DDPRUN_LONG. Argument: debian or current.
source "$(dirname "${BASH_SOURCE[0]}")/pytorch_common.sh"
need_built ddprun
rounds=1
[[ -z ${DDPRUN_LONG:-} ]] || rounds=50

# Of the same kinds, and not of the job: the one process lives, the other has never been; NCCL's is open here.
foreign=(/dev/shm/torch_$$_"$RANDOM"_0 /dev/shm/torch_4194999_"$RANDOM"_0 /dev/shm/nccl-"$(printf 'e%05d' $RANDOM)"
    /dev/shm/psm_"$(printf '%08x' $((RANDOM * RANDOM)))")
touch "${foreign[@]}"
exec {held}<>"${foreign[2]}"
begin_anew() { # the folder of the workers: what they were to leave goes with it
    local id
    for id in $(cat "$1"/keyed.* 2>/dev/null); do ipcrm -m "$id"; done
    rm -rf "$1"
    mkdir "$1"
}
clean_up() {
    rm -f "${foreign[@]}" /dev/shm/cache-"$mark"-?
    begin_anew "$work/python" 2>/dev/null
}
expect_foreign() {
    local name
    for name in "${foreign[@]}"; do [[ -e $name ]] || fail "$name was not ours to remove"; done
}
all_left() { [[ -e $1/left.0 && -e $1/left.1 ]]; }
still_there() { # the folder
    local name
    while read -r name || [[ -n $name ]]; do
        case $name in
            segment*) ! awk '{print $2}' /proc/sysvipc/shm | grep -qx "${name#segment }" || echo "$name" ;;
            *) [[ ! -e $name ]] || echo "$name" ;;
        esac
    done < <(cat "$1"/left.0; echo; cat "$1"/left.1)
}
none_there() { [[ -z $(still_there "$1") ]]; }

for ((round = 0; round < rounds; round++)); do
    for kind in loader python; do
        say "what a $kind leaves is gone before the next generation"
        begin_anew "$work/$kind"
        run 100 --standalone --nproc-per-node=2 --max-restarts=1 --shutdown-timeout=1 "$e2e/shared_memory.py" "$work/$kind" $kind
        expect_code 0
        expect_nothing_left
        expect_foreign

        say "what a $kind leaves is gone with the job"
        begin_anew "$work/$kind"
        run 100 --standalone --nproc-per-node=2 --max-restarts=0 --shutdown-timeout=1 "$e2e/shared_memory.py" "$work/$kind" $kind
        expect_code 137
        none_there "$work/$kind" || fail "left: $(still_there "$work/$kind")"
        expect_foreign

        say "what a $kind leaves is gone when ddprun is killed"
        begin_anew "$work/$kind"
        start job --standalone --nproc-per-node=2 --max-restarts=1 "$python" -c '
import os, runpy, sys
os.kill = lambda *args: None  # nobody dies by itself
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")' "$e2e/shared_memory.py" "$work/$kind" $kind
        wait_until 60 all_left "$work/$kind" || fail "the workers have not left anything"
        kill -KILL "${pid[job]}"
        join job 10
        expect_nothing_left 5
        none_there "$work/$kind" || fail "left: $(still_there "$work/$kind")"
        expect_foreign
    done
    say "what a worker gave a name of its own stays"
    for rank in 0 1; do [[ -e /dev/shm/cache-$mark-$rank ]] || fail "/dev/shm/cache-$mark-$rank has been removed"; done
    for id in $(cat "$work"/python/keyed.*); do
        awk '{print $2}' /proc/sysvipc/shm | grep -qx "$id" || fail "segment $id, which has a key, has been removed"
    done
    rm -f /dev/shm/cache-"$mark"-?
done
