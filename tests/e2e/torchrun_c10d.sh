#!/usr/bin/env bash
# PyTorch's own torchrun on ddprun-rendezvous --serve-c10d: two agents, a worker that fails, a restart, a late joiner;
# then two agents with init_process_group("gloo"). Argument: debian (python3-torch) or current (see tests/run.sh).
source "$(dirname "${BASH_SOURCE[0]}")/pytorch_common.sh"
source "$e2e/daemon_common.sh"
need_built ddprun-rendezvous
need_localhost

export PYTHONWARNINGS=ignore

# Without this, 2.15 publishes the address of rank 0 only when that moves. Then a late joiner waits for it for ever,
# also on PyTorch's own store.
export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1
# torch 1.13 knows only --a_b, and its parser of "0" for --redirects fails with Debian's Python 3.11.
torchrun=("$python" -c '
import sys
import torch
from torch.distributed.elastic.multiprocessing import Std
if torch.__version__.startswith("1."):
    Std.from_str = classmethod(lambda cls, text: cls(int(text)))
    sys.argv = ["--" + word[2:].replace("-", "_") if word.startswith("--") else word for word in sys.argv]
from torch.distributed.run import main
main()')
# Starts an agent of a job: name, run id, options and the worker. Without is_host: torchrun takes itself for the host,
# finds the port in use, and becomes a client.
agent() {
    local name=$1 run=$2; shift 2
    forget "$name"
    DDPRUN_TEST_MARK=$mark "${torchrun[@]}" --rdzv-backend=c10d --rdzv-endpoint="127.0.0.1:$at" --rdzv-id="$run" \
        --rdzv-conf=last_call_timeout=2,join_timeout=60 --nproc-per-node=1 --monitor-interval=0.2 \
        "$@" >"$work/$name.out" 2>"$work/$name.err" </dev/null &
    pid[$name]=$!
}
start_daemon --serve-c10d

# The worker runs until there is worker.sh.go. Once, if there is worker.sh.crash, rank 1 of two fails.
cat >"$work/worker.sh" <<'EOF'
echo "world $WORLD_SIZE, rank $RANK, restart $TORCHELASTIC_RESTART_COUNT"
echo >"$0.up.$WORLD_SIZE.$RANK.$TORCHELASTIC_RESTART_COUNT"
until [[ -e $0.go ]]; do
    if [[ -e $0.crash && $RANK == 1 && $WORLD_SIZE == 2 ]]; then rm "$0.crash"; exit 9; fi
    sleep 0.05
done
EOF
# Whether all workers of a world of this size have begun: size, restart count (a pattern).
world() {
    local rank
    for ((rank = 0; rank < $1; rank++)); do compgen -G "$work/worker.sh.up.$1.$rank.$2" >/dev/null || return 1; done
}
worker=(--no-python bash "$work/worker.sh")

say "two agents meet by keys in the daemon"
agent one elastic --nnodes=1:3 --max-restarts=3 "${worker[@]}"
agent two elastic --nnodes=1:3 --max-restarts=3 "${worker[@]}"
wait_until 40 world 2 '*' || fail "no world of two"

say "a worker fails, and both restart"
rm -f "$work"/worker.sh.up.*
touch "$work/worker.sh.crash"
wait_until 40 world 2 '*' || fail "no world of two after the failure"

say "a third agent joins late, and the three become one world"
agent three elastic --nnodes=1:3 --max-restarts=3 "${worker[@]}"
wait_until 40 world 3 '*' || fail "no world of three"
touch "$work/worker.sh.go"
for name in one two three; do join "$name" 40; expect_code 0; done

say "init_process_group over two agents, on the same daemon"
for name in four five; do agent "$name" sum --nnodes=2 "$e2e/all_reduce.py"; done
for name in four five; do
    join "$name" 60
    expect_code 0
    expect_in "$work/$name.out" 'sum 3'
done

say "the daemon has not closed any connection as faulty"
expect_not_in "$work/daemon.err" 'closed the connection'
stop_daemon TERM
expect_code 0
expect_nothing_left
