#!/usr/bin/env bash
# The workers' environment: roles, unequal nodes, ports, threads, CPUs, devices and timers; and variables of an outer
# launcher, which must change nothing.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun

# What a worker does here: it leaves its variables in env.GENERATION.RANK.
show='env | sort >"$0/env.$TORCHELASTIC_RESTART_COUNT.$RANK"'
# The value that a worker has seen: generation, rank, name.
value() { sed -n "s/^$3=//p" "$work/env.$1.$2"; }

say "three nodes with 1, 2 and 3 workers and two roles"
at=$(free_port)
roles=(master trainer trainer)
for rank in 0 1 2; do
    start "node$rank" --nnodes=3 --node-rank=$rank --rdzv-endpoint="127.0.0.1:$at" --rdzv-id="$mark" \
        --nproc-per-node=$((rank + 1)) --role="${roles[rank]}" bash -c "$show" "$work"
done
for rank in 0 1 2; do join "node$rank" 30; expect_code 0; done
# For each rank: node and local rank, role, rank in the role, workers of the role, workers of the node.
seen=""
for rank in 0 1 2 3 4 5; do
    seen+="$(value 0 $rank GROUP_RANK)$(value 0 $rank LOCAL_RANK):$(value 0 $rank ROLE_NAME)"
    seen+="$(value 0 $rank ROLE_RANK)/$(value 0 $rank ROLE_WORLD_SIZE)/$(value 0 $rank LOCAL_WORLD_SIZE) "
done
[[ $seen == "00:master0/1/1 10:trainer0/5/2 11:trainer1/5/2 20:trainer2/5/3 21:trainer3/5/3 22:trainer4/5/3 " ]] ||
    fail "$seen"

keys=$(grep -h '^DDPRUN_RUN_KEY=' "$work"/env.0.*)
[[ $(sort -u <<<"$keys") =~ ^DDPRUN_RUN_KEY=[a-z][a-z0-9]{19}$ && $(wc -l <<<"$keys") == 6 ]] ||
    fail "not one key for all ranks: $keys"

say "variables of an outer launcher change nothing"
RANK=7 WORLD_SIZE=9 LOCAL_RANK=3 MASTER_ADDR=elsewhere MASTER_PORT=1 GROUP_RANK=5 ROLE_RANK=4 NNODES=3 NODE_RANK=2 \
    TORCHELASTIC_RUN_ID=old TORCHELASTIC_RESTART_COUNT=8 DDPRUN_RUN_KEY="${keys##*=}" \
        run 20 --nproc-per-node=2 bash -c "$show" "$work"
expect_code 0
[[ "$(value 0 1 RANK)/$(value 0 1 WORLD_SIZE) $(value 0 1 LOCAL_RANK) $(value 0 1 GROUP_RANK)" == "1/2 1 0" &&
    $(value 0 1 MASTER_ADDR) == 127.0.0.1 ]] || fail "the noise came through"
[[ $(value 0 1 TORCHELASTIC_RUN_ID) != old && $(value 0 1 MASTER_PORT) != 1 &&
    $(value 0 1 DDPRUN_RUN_KEY) != "${keys##*=}" ]] || fail "the noise came through"

say "every generation has a MASTER_PORT of its own, and a worker can bind the two ports after it"
run 40 --standalone --nproc-per-node=2 --max-restarts=2 --crash-loop=0 bash -c '
    [[ $RANK == 1 ]] && exec sleep 311
    echo "$MASTER_PORT" >>"$0/ports"
    echo "$DDPRUN_RUN_KEY" >>"$0/keys"
    python3 -c "
import os, socket
for i in 1, 2:
    s = socket.socket(); s.bind((\"127.0.0.1\", int(os.environ[\"MASTER_PORT\"]) + i)); s.listen()
" || exit 7
    exit 3' "$work"
expect_code 3
(($(sort -u "$work/ports" | wc -l) == 3)) || fail "not three ports: $(tr '\n' ' ' <"$work/ports")"
(($(sort -u "$work/keys" | wc -l) == 1)) || fail "a run has several keys: $(tr '\n' ' ' <"$work/keys")"
expect_nothing_left

say "OMP_NUM_THREADS: the workers share the CPUs of the node, and the user's own value stays"
unset OMP_NUM_THREADS
cpus=$(nproc)
run 20 --standalone --nproc-per-node=1 bash -c "$show" "$work"
((cpus >= $(value 0 0 OMP_NUM_THREADS) && $(value 0 0 OMP_NUM_THREADS) >= 1)) ||
    fail "$(value 0 0 OMP_NUM_THREADS) of $cpus"
OMP_NUM_THREADS=7 run 20 --standalone --nproc-per-node=2 bash -c "$show" "$work"
[[ $(value 0 0 OMP_NUM_THREADS) == 7 ]] || fail "the user's number was not kept"

say "--numa-binding binds, and OMP_NUM_THREADS follows"
# nproc obeys OMP_NUM_THREADS, so it counts the CPUs of the binding only without it.
run 20 --standalone --nproc-per-node=1 --numa-binding=core-complex \
    bash -c "$show"'; env -u OMP_NUM_THREADS nproc >"$0/bound"' "$work"
expect_code 0
[[ $(value 0 0 OMP_NUM_THREADS) == "$(cat "$work/bound")" ]] ||
    fail "bound to $(cat "$work/bound") CPUs, $(value 0 0 OMP_NUM_THREADS) threads"

say "--virtual-local-rank: one device for each worker, and LOCAL_RANK=0"
CUDA_VISIBLE_DEVICES=3,5 run 20 --standalone --nproc-per-node=2 --virtual-local-rank bash -c "$show" "$work"
[[ "$(value 0 1 LOCAL_RANK) $(value 0 1 CUDA_VISIBLE_DEVICES) $(value 0 1 RANK)" == "0 5 1" ]] || fail "not so"

say "a file timer that expires kills its worker, and the job restarts"
# Rank 0 sets one timer that it releases in time, writes nonsense, and sets one that expires.
cat >"$work/timer.sh" <<'WORKER'
[[ $TORCHELASTIC_RESTART_COUNT == 1 ]] && exit 0
((RANK == 1)) && exec sleep 312
python3 - "$1" <<'PYTHON'
import json, os, sys, time
with open(os.environ["TORCHELASTIC_TIMER_FILE"], "w") as f:
    def say(scope, at):
        timer = {"version": 1, "pid": os.getppid(), "scope_id": scope, "expiration_time": at, "signal": 9}
        f.write(json.dumps(timer) + "\n")
        f.flush()
    say("released", time.time() + 0.2); say("released", -1)
    f.write("nonsense\n"); f.flush()
    say("late", time.time() + 0.5)
PYTHON
exec sleep 313
WORKER
TORCHELASTIC_ENABLE_FILE_TIMER=1 run 40 --standalone --nproc-per-node=2 --max-restarts=1 bash "$work/timer.sh"
expect_code 0
expect_in "$work/run.err" 'timer late of process [0-9]+ has expired'
expect_not_in "$work/run.err" 'timer released'
expect_in "$work/run.err" 'not a valid timer request: nonsense'
expect_nothing_left
# Without TORCHELASTIC_ENABLE_FILE_TIMER nobody reads a timer file.
run 20 --standalone bash -c "$show" "$work"
[[ -z $(value 0 0 TORCHELASTIC_TIMER_FILE) ]] || fail "a timer file that nobody serves"

say "without PATH programs are looked for where execvp() does"
env -i DDPRUN_TEST_MARK="$mark" "$ddprun" --standalone env >"$work/run.out" 2>"$work/run.err" || fail "no program found"
expect_not_in "$work/run.out" 'PATH='
code=0
env -i "$ddprun" --standalone no-such-program 2>"$work/run.err" || code=$?
expect_code 2
expect_in "$work/run.err" 'not found in PATH \(which is not set: /usr/local/bin:/usr/bin:/bin\)'

# At the start of Python, and where NumPy is to be had, in a worker that a server has forked.
say "a wrapper of python that sets PYTHONPATH, and an environment that no shell makes"
mkdir "$work/lib" "$work/wrapper"
echo 'X = 1' >"$work/lib/of_wrapper.py"
python=$root/build/torch-venv/bin/python
[[ -x $python ]] || python=$(python3 -c 'import sys; print(sys.executable)')
cat >"$work/wrapper/python3" <<WRAPPER
#!/bin/sh
export PYTHONPATH=$work/lib\${PYTHONPATH:+:\$PYTHONPATH}
exec $python "\$@"
WRAPPER
chmod +x "$work/wrapper/python3"
cat >"$work/odd.py" <<'PYTHON'
import ctypes, os, sys
entries = [os.fsencode(f"{name}={value}") for name, value in os.environ.items()] + [b"noequals", b"=odd"]
words = [os.fsencode(word) for word in sys.argv[1:]]
def array(texts): return (ctypes.c_char_p * (len(texts) + 1))(*texts, None)
ctypes.CDLL(None).execve(words[0], array(words), array(entries))
PYTHON
cat >"$work/worker.py" <<'PYTHON'
import os, subprocess, sys, time
import of_wrapper
try:
    import numpy
except ImportError:
    pass
child = subprocess.run([sys.argv[1], "-c", "import of_wrapper"])
sys.stdout.write(f"path {os.environ['PYTHONPATH']} child {child.returncode}\n")  # in one piece, beside the other rank
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    time.sleep(1)
    sys.exit(3)
PYTHON
for user in "" /opt/other; do
    DDPRUN_TEST_MARK=$mark PATH=$work/wrapper:$PATH XDG_CACHE_HOME=$work/cache PYTHONPATH=$user timeout 40 \
        "$python" "$work/odd.py" "$ddprun" --standalone --no-label --nproc-per-node=2 --max-restarts=1 --crash-loop=0 \
        --warm=always "$work/worker.py" "$python" >"$work/run.out" 2>"$work/run.err" </dev/null || fail "no success"
    (($(grep -cx "path $work/lib${user:+:$user} child 0" "$work/run.out") == 4)) ||
        fail "PYTHONPATH: $(<"$work/run.out")"
done

say "a .pth file that takes PYTHONPATH away"
site=$(PYTHONUSERBASE=$work/base /usr/bin/python3 -m site --user-site)
mkdir -p "$site"
echo 'import os; os.environ.pop("PYTHONPATH", None)' >"$site/first.pth"
echo 'import os; print("PYTHONPATH" in os.environ)' >"$work/worker.py"
PYTHONUSERBASE=$work/base PYTHONPATH=/opt/other run 40 --standalone --no-label --nproc-per-node=1 --warm=always \
    --python=/usr/bin/python3 "$work/worker.py"
expect_code 0
[[ $(<"$work/run.out") == False ]] || fail "it is there again"
expect_not_in "$work/run.err" 'sitecustomize;'
expect_nothing_left
