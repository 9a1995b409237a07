#!/usr/bin/env bash
# The proof that what a server imports early may be imported early, for the packages of a real PyTorch (debian or
# current): nothing speaks against it, and their versions are on the list.
source "$(dirname "${BASH_SOURCE[0]}")/pytorch_common.sh"
need_program strace

say "the imports have the same result in another state, and write, print and leave nothing"
"$python" "$root/tests/warm_list/prove.py" >"$work/prove.out" 2>&1 || fail "something speaks against it"
expect_in "$work/prove.out" '^nothing speaks against it$'
for package in numpy torch typing_extensions; do
    expect_in "$work/prove.out" "^$package [0-9.a]*\$"
done

[[ $1 == debian ]] || exit 0
say "what reads its rank, writes, prints or keeps its surroundings is found"
mkdir "$work/lib"
export PYTHONPATH=$work/lib
while IFS='|' read -r pattern text; do
    echo "$text" >"$work/lib/planted.py"
    "$python" "$root/tests/warm_list/prove.py" planted >"$work/prove.out" 2>&1 && fail "nothing speaks against: $text"
    expect_in "$work/prove.out" "^against it: $pattern"
done <<END
planted.RANK: '0' in one state, '3' in another|import os; RANK = os.environ.get("RANK", "0")
planted.ALL|import os; ALL = dict(os.environ)
planted.WHERE|import os; WHERE = os.getcwd()
planted.A.term|import signal; A = type("A", (), {"term": repr(signal.getsignal(15))})
planted.LEVEL|import logging; LEVEL = logging.root.level
prints hello|print("hello")
draws random numbers|import random; random.random()
leaves a thread|import threading, time; threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
does .*openat.*planted.log.*O_WRONLY|open("$work/planted.log", "w")
does .*socket|import socket; socket.socket().bind(("127.0.0.1", 0))
END
