#!/usr/bin/env bash
# A job beside other programs of its user that share /tmp and /dev/shm: what a job cleans up at a restart and at its end
# is its own. Some of these programs live in another network namespace, as in a container; the kernel's list of sockets
# does not show them here.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun
need_program python3
need_program unshare

# A Python program with a fork server, which CPython starts once and which ends of a bare connection. It starts a
# process whenever a file named go.N comes, and answers with done.N.
cat >"$work/fork_server.py" <<'PYTHON'
import multiprocessing
import os
import sys
import time

folder = sys.argv[1]


def work(number):
    os.rename(f"{folder}/go.{number}", f"{folder}/done.{number}")


if __name__ == "__main__":
    context = multiprocessing.get_context("forkserver")
    number = 0
    while not os.path.exists(f"{folder}/end"):
        if os.path.exists(f"{folder}/go.{number}"):
            process = context.Process(target=work, args=(number,))
            process.start()
            process.join()
            number += 1
        time.sleep(0.02)
PYTHON
# Loaded by a job's worker: the same kind of socket, whose owner the job kills.
cat >"$work/worker.py" <<'PYTHON'
import glob
import multiprocessing
import os
import sys
import time

folder = sys.argv[1]
if __name__ == "__main__":
    if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        manager = multiprocessing.Manager()
        address = manager.address
        with open(f"{folder}/address.new", "w") as file:
            file.write(address if isinstance(address, str) else "")
        os.rename(f"{folder}/address.new", f"{folder}/address")
        while not os.path.exists(f"{folder}/fail"):
            time.sleep(0.02)
        os._exit(3)
PYTHON

answers=-1
answered() { [[ -e $work/done.$answers ]]; }
# The other program starts one more process.
other_works() {
    touch "$work/go.$((++answers))"
    wait_until 20 answered || fail "the fork server of another program has ended: $(tail -n 3 "$work/other.err")"
}
here() { "$@"; }
apart() { unshare -n -- "$@"; }
unshare -n true 2>/dev/null || apart() { here "$@"; } # no rights for it: then in this namespace

for where in here apart; do
    say "the fork server of a younger program lives on ($where)"
    rm -f "$work"/{address,fail,end} "$work"/done.*
    answers=-1
    start job --standalone --nproc-per-node=1 --max-restarts=1 --warm=off python3 "$work/worker.py" "$work"
    wait_until 30 test -e "$work/address" || fail "the worker has no manager"
    $where python3 "$work/fork_server.py" "$work" >"$work/other.out" 2>"$work/other.err" </dev/null &
    other=$!
    other_works
    left=$TMPDIR/pymp-of-others-$where
    mkdir "$left"
    python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$left/listener"
    touch "$work/fail"
    join job 60
    expect_code 0
    expect_nothing_left
    other_works
    touch "$work/end"
    wait "$other" || fail "the other program has failed: $(tail -n 3 "$work/other.err")"
    [[ -S $left/listener ]] || fail "a socket that another program has left was not the job's to remove"
    address=$(<"$work/address")
    [[ $address != /* || ! -e $address ]] || fail "the socket of the job's own manager is left: $address"
    [[ $address != /* || ! -e ${address%/*} ]] || fail "the folder of the job's own manager is left: ${address%/*}"
done
