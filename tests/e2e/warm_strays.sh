#!/usr/bin/env bash
# A job with a fork server beside it does what it does with --warm=off: seen from outside (strace -f), the same files
# are written, the same sockets made and the same programs run. No import of the server is one of a stray rank.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
source "$e2e/warm_common.sh"
need_built ddprun
need_program python3
need_program strace
strace -f -o /dev/null true 2>/dev/null || skip "no process can be traced here"
new_python
new_folder job
package jinja2 3.1.6 <"$e2e/warm/packages/jinja2.py"
package networkx 3.5 <"$e2e/warm/packages/networkx.py"
package mpmath 1.3.0 <"$e2e/warm/probe.py"

# What a library of the user may do when it is imported: a log of rank 0, a folder, a program, a socket.
cat >"$folder/lib/noisy.py" <<'END'
import os
import socket
import subprocess
import tempfile

if int(os.environ.get("RANK", 0)) == 0:
    open(os.path.join(os.environ["PLACE"], "log"), "w").close()
FOLDER = tempfile.mkdtemp()
os.rmdir(FOLDER)
subprocess.run(["true"], check=True)
SOCKET = socket.socket(socket.AF_UNIX)
END
# A package of the list that imports it.
package sympy 1.14.0 <<'END'
import noisy
END
cat >"$folder/train.py" <<'END'
import os
import time

import jinja2
import mpmath
import networkx
import sympy


def wait_for(name):
    end = time.monotonic() + 100
    while not os.path.exists(os.environ["PLACE"] + name) and time.monotonic() < end:
        time.sleep(0.02)


# A server is prepared at the first progress. By then both have imported everything.
open(os.environ["PLACE"] + "/imported-" + os.environ["RANK"], "w").close()
for rank in "01":
    wait_for("/imported-" + rank)
os.write(int(os.environ["DDPRUN_PROGRESS_FD"]), b"step=1\n")
wait_for("/go")
END

calls=openat,open,creat,mkdir,mkdirat,unlink,unlinkat,rmdir,rename,renameat,renameat2,link,linkat,symlink,symlinkat
calls+=,truncate,mknod,mknodat,chmod,fchmodat,socket,bind,connect,execve
play() { # name, mode
    local name=$1
    export PET_WARM=$2 # the command line is the same
    export PLACE=$work/place
    rm -rf "$PLACE"
    mkdir "$PLACE"
    forget "$name"
    DDPRUN_TEST_MARK=$mark strace -f -qq -y -s 300 -o "$work/$name.trace" -e trace="$calls" "$ddprun" \
        --standalone --no-label -v --nproc-per-node=2 --max-restarts=2 --python "$python" "$folder/train.py" \
        >"$work/$name.out" 2>"$work/$name.err" </dev/null &
    pid[$name]=$!
    if [[ $name == warm ]]; then
        wait_until 60 has "$work/$name.err" "$ready" || fail "no server"
        # It looks at the imports once more when they have become more.
        wait_until 40 has "$work/$name.err" "$ready.*noisy" || echo "the server has not refused the library"
    else
        wait_until 60 test -e "$PLACE/log" || fail "rank 0 has not begun"
    fi
    touch "$PLACE/go"
    join "$name" 60
    expect_code 0
    expect_nothing_left 5
}

say "files, sockets and programs of a job are the same with a fork server beside it"
play cold off
play warm auto
own='/ddprun_N/warm(/|$)'
python3 "$e2e/warm/strays.py" "$work/cold.trace" "$work/warm.trace" "$own" "$python -u (-c \$|$folder/train.py)" \
    >"$work/strays.out" || fail "a server leaves traces"
tail -n 1 "$work/strays.out"
