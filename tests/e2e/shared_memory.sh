#!/usr/bin/env bash
# What a generation leaves in shared memory is gone before the next one starts, at the end of the job, and after a
# SIGKILL of ddprun; what it leaves in sockets of the libraries is gone with the job. What other processes have there
# stays, and so does what a worker gave a name of its own. 50 times with DDPRUN_LONG. Argument: debian or current.
source "$(dirname "${BASH_SOURCE[0]}")/pytorch_common.sh"
need_built ddprun
rounds=1
[[ -z ${DDPRUN_LONG:-} ]] || rounds=50

# Objects of the same kinds that are not the job's: of a process that lives, of one that has never existed, one of NCCL
# that this shell has open, and one with a name as Python makes them.
foreign=(/dev/shm/torch_$$_"$RANDOM"_0 /dev/shm/torch_4194999_"$RANDOM"_0 /dev/shm/nccl-"$(printf 'e%05d' $RANDOM)"
    /dev/shm/psm_"$(printf '%08x' $((RANDOM * RANDOM)))")
touch "${foreign[@]}"
exec {held}<>"${foreign[2]}"
# Empties the folder of the workers, and removes the segments with a key that they have left: folder.
begin_anew() {
    local id
    for id in $(cat "$1"/keyed.* 2>/dev/null); do ipcrm -m "$id"; done
    rm -rf "$1"
    mkdir "$1"
}
clean_up() {
    rm -f "${foreign[@]}" /dev/shm/cache-"$mark"-?
    begin_anew "$work/python" 2>/dev/null
}
# Checks that nobody has removed the objects of others.
expect_foreign() {
    local name
    for name in "${foreign[@]}"; do [[ -e $name ]] || fail "$name was not ours to remove"; done
}
all_left() { [[ -e $1/left.0 && -e $1/left.1 ]]; }
# Prints what the workers have left and is still there: their folder.
still_there() {
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
        none_there "$work/$kind" || fail "left: $(still_there "$work/$kind")"
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
    say "objects that a worker gave a name of its own stay"
    for rank in 0 1; do [[ -e /dev/shm/cache-$mark-$rank ]] || fail "/dev/shm/cache-$mark-$rank has been removed"; done
    for id in $(cat "$work"/python/keyed.*); do
        awk '{print $2}' /proc/sysvipc/shm | grep -qx "$id" || fail "segment $id, which has a key, has been removed"
    done
    rm -f /dev/shm/cache-"$mark"-?
done
