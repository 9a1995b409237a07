#!/usr/bin/env bash
# Eleven kinds of death, made for real, and the report of each. What differs from run to run is replaced by a word; the
# rest is compared with a golden file in tests/data/failures (DDPRUN_REWRITE=1 writes them anew). Then what else reports
# meet: broken error files, --on-failure, a worker that cannot be killed.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun
# Memory that was freed is overwritten, so that its use ends ddprun.
export GLIBC_TUNABLES=glibc.malloc.perturb=85
need_program python3
golden=$root/tests/data/failures
# Core dumps lie in the working directory. They would change the reports, so only one story allows them.
cd "$work"
ulimit -S -c 0

# Prints the report with words in place of times, process ids, folders, host names and what the kernel offers here: file
# of standard error.
normalised() {
    sed -n '/^====*$/,/^====*$/p' "$1" | sed -E \
        -e "s/$(hostname -s)\\b/HOST/g" -e "s|$work|WORK|g" \
        -e 's/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z/TIME/' -e 's/\(pid: [1-9][0-9]*\)/(pid: PID)/' \
        -e 's/after ([0-9.]+ (ms|s)|[0-9]+ m [0-9]+ s)/after SPAN/g' -e 's/^(  id +: ).*/\1ID/' \
        -e 's/within [0-9.]+ (ms|s)/within SPAN/g' \
        -e 's/out of memory: (the kernel.s log|its cgroup) .*/out of memory: WITNESS/' \
        -e 's|/[A-Za-z0-9_.-]+/failure.json|/RUN/failure.json|' \
        -e 's|/deaths_[A-Za-z0-9_]+/|/RUN/|' -e 's/[0-9.]+ s later/SPAN later/' \
        -e 's/progress for [0-9.]+ s/progress for SPAN/' -e 's/^        (thread|Thread) .*/        STACK/' -e '/^        #/d' |
        uniq
}
# Compares a report with its golden file: name, file of standard error.
compare() {
    normalised "$2" >"$work/$1.report"
    [[ ${DDPRUN_REWRITE:-} != 1 ]] || cp "$work/$1.report" "$golden/$1.txt"
    diff -u "$golden/$1.txt" "$work/$1.report" >&2 || fail "the report is not that of ${golden##*/}/$1.txt"
}
# A job in which rank 1 dies while rank 0 waits until it is stopped: name, exit code, options and program.
dies() {
    local name=$1 expected=$2; shift 2
    run 30 --standalone --nproc-per-node=2 --max-restarts=0 --rdzv-id=deaths "${more[@]}" "$@"
    expect_code "$expected"
    compare "$name" "$work/run.err"
    expect_nothing_left
}
more=()
script() { printf '%s\n' "$@"; }

say "exception: the error file of @record has the message, the output has the trace"
cat >"$work/raise.py" <<'PYTHON'
import array, fcntl, json, os, sys, termios, time
if os.environ["RANK"] == "0":
    time.sleep(300)
print("step 1", flush=True)
unread = array.array("i", [1])
while unread[0]:  # of two pipes with something in them nobody knows which came first
    fcntl.ioctl(1, termios.FIONREAD, unread)
with open(os.environ["TORCHELASTIC_ERROR_FILE"], "w") as file:
    json.dump({"message": {"message": "ValueError: no data", "extraInfo": {
        "py_callstack": "Traceback\nValueError: no data", "timestamp": str(int(time.time()))}}}, file)
sys.exit("ValueError: no data")
PYTHON
# The JSON of the report lies beside the logs.
more=(--log-dir "$work/logs")
dies exception 1 python3 "$work/raise.py"
more=()
json=("$work"/logs/deaths_*/failure.json)
[[ -s ${json[0]} ]] || fail "there is no failure.json beside the logs"
python3 - "${json[0]}" <<'PYTHON' || fail "failure.json is not as documented"
import json, sys
report = json.load(open(sys.argv[1]))
first = report["first_failure"]
assert report["format"] == "ddprun failure report" and report["version"] == 1
assert report["verdict"] == "worker_failed" and report["exit_code"] == 1
assert first["rank"] == 1 and first["error"] == "ValueError: no data" and first["pid"] > 0
assert first["last_lines"] == ["step 1", "ValueError: no data"], first["last_lines"]
assert report["consequence_count"] == 0 and report["lost_node"] is None
PYTHON

say "exit code"
dies exit_code 7 bash -c '((RANK == 0)) && exec sleep 300; echo "woe is me" >&2; exit 7'

say "SEGV"
dies segv 139 bash -c '((RANK == 0)) && exec sleep 300; kill -SEGV $$'

say "a core dump is named in the report"
if ulimit -S -c unlimited 2>/dev/null; then
    run 30 --standalone --max-restarts=0 bash -c 'kill -SEGV $$'
    ulimit -S -c 0
    expect_code 139
    expect_in "$work/run.err" 'note      : core dump: '
    core=$(sed -n 's|.*core dump: \(/.*\)|\1|p' "$work/run.err")
    [[ $core != "$work"/core* || -s $core ]] || fail "there is no $core"
else
    echo "  (no core dumps are allowed here: not tried)"
fi

say "SIGKILL from outside"
dies kill 137 bash -c '((RANK == 0)) && exec sleep 300; kill -KILL $$'

say "a program that cannot be executed"
# A script whose interpreter does not exist. 127 is the code of a shell for a program that is not found.
printf '#!/nowhere/interpreter\n' >"$work/broken"
chmod +x "$work/broken"
run 30 --standalone --nproc-per-node=1 --max-restarts=0 --rdzv-id=deaths "$work/broken"
expect_code 127
compare exec_failure "$work/run.err"

say "a hang ended by --hang-timeout: no exit code, but the place where the worker stands"
# Rank 1 stands still at step 2, rank 0 after step 3.
start hung --standalone --nproc-per-node=2 --max-restarts=0 --rdzv-id=deaths --hang-timeout=1 --lease=2 bash -c '
    for step in 1 2 3; do
        echo "step=$step" >&"$DDPRUN_PROGRESS_FD"; echo "step $step"
        ((RANK == 1 && step == 2)) && exec sleep 300
    done
    exec sleep 300'
join hung 40
expect_code 124
compare hang "$work/hung.err"
expect_nothing_left

say "a timer that the worker has set itself expires"
export TORCHELASTIC_ENABLE_FILE_TIMER=1
dies timer 137 python3 -c '
import json, os, time
if os.environ["RANK"] == "1":
    with open(os.environ["TORCHELASTIC_TIMER_FILE"], "w") as timers:
        timers.write(json.dumps({"version": 1, "pid": os.getpid(), "scope_id": "step", "signal": 9,
                                 "expiration_time": time.time() + 0.1}) + "\n")
time.sleep(300)'
unset TORCHELASTIC_ENABLE_FILE_TIMER

say "a library is missing"
need_program cc
# A program is linked with a library that is then removed.
echo 'int there(void) { return 0; }' | cc -shared -fPIC -x c -o "$work/libthere.so" -
echo 'int there(void); int main(void) { return there(); }' | cc -x c -o "$work/linked" - -L"$work" -lthere
rm "$work/libthere.so"
dies missing_library 127 bash -c '((RANK == 0)) && exec sleep 300; exec "$0"' "$work/linked"

say "the disk is full"
dies disk_full 1 python3 -c '
import os, time
if os.environ["RANK"] == "0":
    time.sleep(300)
try:
    os.write(os.open("/dev/full", os.O_WRONLY), b"snapshot")
except OSError as full:
    raise SystemExit(f"OSError: {full}")'

say "a node is lost"
# Only the ddprun of n1 is killed; its keeper says so at once. Nobody replaces the node within the 3 s of
# --join-timeout.
at=$(free_port)
for rank in 0 1; do
    DDPRUN_NODE=n$rank start n$rank --nnodes=2 --node-rank=$rank --rdzv-endpoint="127.0.0.1:$at" --rdzv-id="$mark" --lease=2 \
        --join-timeout=3 --log-dir "$work/lost$rank" sleep 330
done
wait_until 10 count_is "sleep 330" 2 || fail "the workers do not run"
kill -KILL "${pid[n1]}"
join n1 5
join n0 20
expect_code 69
compare lost_node "$work/n0.err"
expect_nothing_left 5

say "the report is the same on every node of a job"
# One report, printed by each node.
at=$(free_port)
for rank in 0 1; do
    start m$rank --nnodes=2 --node-rank=$rank --rdzv-endpoint="127.0.0.1:$at" --rdzv-id="$mark" --lease=2 --max-restarts=0 \
        bash -c '((RANK == 0)) && exec sleep 331; echo "from rank 1"; exit 9'
done
for rank in 0 1; do join m$rank 20; expect_code 9; done
compare two_nodes "$work/m0.err"
diff "$work/two_nodes.report" <(normalised "$work/m1.err") || fail "the nodes report different things"
# The time of the failure is the same moment on every node.
times() { grep -h '^  time ' "$1"; }
[[ $(times "$work/m0.err") == "$(times "$work/m1.err")" ]] || fail "the nodes name different times"

# The memory control group of this test, version 1 or 2, if it may make one.
if ((EUID == 0)); then
    group=$(sed -n 's/^[0-9]*:memory:/\/sys\/fs\/cgroup\/memory/p' /proc/self/cgroup) limit=memory.limit_in_bytes
    [[ -n $group ]] || { group=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup); limit=memory.max; }
    group=${group%/}/ddprun-$mark
fi
# Thaws and kills what is frozen, and removes the control groups.
clean_up() {
    local name
    [[ -z ${frozen:-} ]] || { echo THAWED >"$frozen/freezer.state"; marked | xargs -r kill -9; sleep 0.2; } 2>/dev/null
    for name in "${group:-}" "${frozen:-}"; do [[ -z $name ]] || wait_until 5 rmdir "$name" 2>/dev/null || true; done
}
if ((EUID == 0)) && mkdir "$group" 2>/dev/null && echo 96M >"$group/$limit" 2>/dev/null; then
    say "out of memory: the kernel names the worker that it has killed"
    # Rank 1 takes memory until the kernel kills it, at the limit of 96 MiB.
    cat >"$work/grow.py" <<'PYTHON'
import os, time
held = []
while os.environ["RANK"] == "1":
    held.append(bytearray(1 << 20))
time.sleep(300)
PYTHON
    code=0 # the shell that becomes ddprun joins the group
    (
        echo "$BASHPID" >"$group/cgroup.procs"
        DDPRUN_TEST_MARK=$mark exec timeout 30 "$ddprun" --standalone --nproc-per-node=2 --max-restarts=0 --rdzv-id=deaths \
            python3 "$work/grow.py" >"$work/run.out" 2>"$work/run.err" </dev/null
    ) || code=$?
    expect_code 137
    compare oom_kill "$work/run.err"
    rmdir "$group"
else
    echo "  (no memory control group can be made here: not tried)"
fi
group=""

say "another worker exits first: the one that wrote its error file first is the cause"
dies cut_short 1 python3 -c '
import json, os, sys, time
file, ready = os.environ["TORCHELASTIC_ERROR_FILE"], sys.argv[1]
if os.environ["RANK"] == "1":
    json.dump({"message": {"message": "KeyError: 3"}}, open(file, "w"))
    open(ready, "w").close()
    time.sleep(300)  # a long way to its exit
while not os.path.exists(ready):
    time.sleep(0.01)
time.sleep(0.05)
sys.exit("closed by peer")' "$work/ready"

say "broken error files: one line each, and the rest of the report is there"
# A job whose rank 1 breaks its error file and exits with 6: how it breaks it, what the report says.
broken() {
    run 30 --standalone --nproc-per-node=2 --max-restarts=0 bash -c "((RANK == 0)) && exec sleep 300
        file=\$TORCHELASTIC_ERROR_FILE; $1; echo its last word; exit 6"
    expect_code 6
    expect_in "$work/run.err" "note      : error file .*$2"
    expect_in "$work/run.err" '^    its last word$'
    expect_nothing_left
}
broken 'truncate -s 1G "$file"' 'has 1024 MiB \(limit 1 MiB\), so it was not read'
broken 'echo "{\"message\": \"cut" >"$file"' 'is not JSON'
broken 'echo "[1, 2]" >"$file"' 'has no text "message"'
broken 'mkfifo "$file"' 'is not a regular file'
broken 'mkdir "$file"' 'is not a regular file'
# root may read every file.
((EUID == 0)) || broken 'echo "{}" >"$file"; chmod 0 "$file"' 'cannot be read'

say "--on-failure gets the JSON once; what it prints is shown; its own failure is one line"
printf '#!/bin/sh\ncat >>"%s/told"\n' "$work" >"$work/tell"
printf '#!/bin/sh\necho page sent\nexit 3\n' >"$work/careless"
chmod +x "$work/tell" "$work/careless"
run 30 --standalone --nproc-per-node=2 --max-restarts=0 --on-failure="$work/tell" bash -c '((RANK == 0)) && exec sleep 300; exit 4'
expect_code 4
python3 -c 'import json, sys; assert json.load(open(sys.argv[1]))["verdict"] == "worker_failed"' "$work/told" ||
    fail "the program was not given the report"
run 30 --standalone --max-restarts=0 --on-failure="$work/careless" bash -c 'exit 4'
expect_code 4
(($(grep -c 'on-failure' "$work/run.err") == 2)) || fail "not what it prints and one line of warning"
expect_in "$work/run.err" '[-]-on-failure: page sent$'
expect_in "$work/run.err" 'on-failure: .*careless exited with 3'
run 30 --standalone --on-failure="$work/nowhere" true
expect_code 2
expect_in "$work/run.err" '^ddprun: --on-failure: program .*nowhere: No such file'
touch "$work/unmarked.py"
run 30 --standalone --on-failure="$work/unmarked.py" true
expect_code 2
expect_in "$work/run.err" '^ddprun: --on-failure: program .*unmarked.py: not executable; chmod \+x it$'
# A program that is there at the start, and gone when it is needed.
cp "$work/careless" "$work/brief"
run 30 --standalone --max-restarts=0 --on-failure="$work/brief" bash -c 'rm "$0"; exit 4' "$work/brief"
expect_code 4
expect_in "$work/run.err" 'on-failure: cannot start'
# A job that succeeds has no report.
rm "$work/told"
run 30 --standalone --on-failure="$work/tell" true
expect_code 0
[[ ! -e $work/told ]] || fail "it was called after a success"
expect_nothing_left

say "--on-event gets each event of the job as JSON, the end at last, and a typing error in it is found before the start"
printf '#!/bin/sh\n(cat; echo) >>"%s/events"\n' "$work" >"$work/notes"
chmod +x "$work/notes"
run 30 --standalone --nproc-per-node=2 --max-restarts=1 --on-event="$work/notes" bash -c \
    '((TORCHELASTIC_RESTART_COUNT == 1 || RANK == 0)) || { sleep 1; exit 4; }; ((RANK == 0 && TORCHELASTIC_RESTART_COUNT == 0)) && exec sleep 300; sleep 1'
expect_code 0
python3 - "$work/events" <<'END' || fail "not the events: $(cat "$work/events")"
import json, sys
events = [json.loads(line) for line in open(sys.argv[1]) if line.strip()]
told = [(event["event"], event["sentence"]) for event in events]
for kind, part in [("leader", " leads"), ("generation", "generation 0 runs with 2 workers"),
                   ("generation", "generation 1 runs with 2 workers: rank 1"), ("end", "the job has ended with code 0")]:
    assert any(kind == event and part in sentence for event, sentence in told), (kind, part)
assert told[-1][0] == "end", told
END
run 30 --standalone --on-event="$work/nowhere" true
expect_code 2
expect_in "$work/run.err" '^ddprun: --on-event: program .*nowhere: No such file'

say "all nodes leave together, when the program of --on-failure has ended; that program inherits no socket"
# It lists its open files and runs until the test lets it end.
printf '#!/bin/sh\nls -l /proc/self/fd >"%s/fds"; until [ -e "%s/leave" ]; do sleep 0.05; done\n' "$work" "$work" >"$work/slow"
chmod +x "$work/slow"
at=$(free_port)
for rank in 0 1; do
    start t$rank --nnodes=2 --node-rank=$rank --rdzv-endpoint="127.0.0.1:$at" --rdzv-id="$mark" --lease=2 --max-restarts=0 \
        --on-failure="$work/slow" bash -c '((RANK == 0)) && exec sleep 332; exit 9'
done
wait_until 20 test -s "$work/fds" || fail "the program is not called"
wait_until 20 has "$work/t1.err" '^  exit code : 9' || fail "the other node has not told"
sleep 0.5 # time to leave by mistake
for rank in 0 1; do ! ended "${pid[t$rank]}" || fail "node $rank has left before"; done
touch "$work/leave"
for rank in 0 1; do join t$rank 20; expect_code 9; done
expect_not_in "$work/fds" 'socket:'
expect_nothing_left

say "an outer scheduler finds the root cause in the file that it named"
TORCHELASTIC_ERROR_FILE=$work/above.json run 30 --standalone --max-restarts=0 bash -c 'exit 8'
expect_code 8
expect_in "$work/above.json" '"errorCode":8'

say "a torn checkpoint is named, with the command that moves it away, and then the job goes on from the whole one"
mkdir -p "$work"/model/checkpoint-{10,20}
touch "$work"/model/checkpoint-10/{config.json,model.safetensors,trainer_state.json} "$work/model/checkpoint-20/config.json"
cat >"$work/resume.py" <<'P'
import glob
newest = max(glob.glob("model/checkpoint-*"), key=lambda path: int(path.rpartition("-")[2]))
open(newest + "/trainer_state.json").close()
print("resumed from", newest)
P
run 30 --standalone --max-restarts=0 resume.py
expect_code 1
expect_in "$work/run.err" '^  note      : model/checkpoint-20 is torn: it lacks model.safetensors and 1 more, which model/checkpoint-10 has'
moves=$(sed -n 's/^  note .*To resume from model.checkpoint-10: //p' "$work/run.err")
[[ $moves == 'mv model/checkpoint-20 model.torn-checkpoint-20' ]] || fail "the command is $moves"
$moves
run 30 --standalone --max-restarts=0 resume.py
expect_code 0
expect_in "$work/run.out" 'resumed from model/checkpoint-10'

# SIGKILL has no effect on a frozen process, as on one that hangs in the kernel, until it is thawed.
frozen=/sys/fs/cgroup/freezer/ddprun-$mark
if ((EUID == 0)) && mkdir "$frozen" 2>/dev/null; then
    say "a worker that cannot be killed is named, and the job ends"
    export frozen
    start stuck --standalone --nproc-per-node=2 --max-restarts=0 --unkillable-timeout=1 --shutdown-timeout=1 bash -c '
        ((RANK == 1)) && { echo $$ >"$frozen/cgroup.procs"; echo FROZEN >"$frozen/freezer.state"; }
        until [[ $(<"$frozen/freezer.state") == FROZEN ]]; do sleep 0.05; done
        exit 5'
    join stuck 40
    expect_code 5
    expect_in "$work/stuck.err" 'rank 1 \(process [0-9]+, bash\) is still alive .* after SIGKILL: .*uninterruptible sleep \(D\)'
    expect_in "$work/stuck.err" '^  and node .* is unusable: rank 1'
    echo THAWED >"$frozen/freezer.state"
    expect_nothing_left 10

    say "its node becomes unusable and a spare replaces it; the node hears the end long after its lease"
    at=$(free_port)
    echo THAWED >"$frozen/freezer.state"
    for rank in 0 1 2; do
        start s$rank --nnodes=2:3 --node-rank=$rank --rdzv-endpoint="127.0.0.1:$at" --rdzv-id="$mark" --lease=2 --last-call=0 \
            --on-join=spare --max-restarts=1 --unkillable-timeout=1 --shutdown-timeout=1 bash -c '
            [[ $TORCHELASTIC_RESTART_COUNT != 0 ]] && { echo "took over"; sleep 4; exit 0; }
            ((RANK == 1)) && { echo $$ >"$frozen/cgroup.procs"; until [[ -e $0/spare ]]; do sleep 0.05; done; echo FROZEN >"$frozen/freezer.state"; }
            until [[ $(<"$frozen/freezer.state") == FROZEN ]]; do sleep 0.05; done
            exit 5' "$work"
        # The third node is the spare, so it starts when the first two run.
        ((rank != 1)) || wait_until 10 grep -q . "$frozen/cgroup.procs" || fail "the workers do not run"
    done
    connected() { (($(grep -ciE "$(printf ' [0-9A-F]+:[0-9A-F]+ [0-9A-F]+:%04X 01' "$at")" /proc/net/tcp) >= 2)); }
    wait_until 10 connected || fail "the spare does not call"
    touch "$work/spare"
    for rank in 0 1 2; do join s$rank 40; expect_code 0; done
    expect_in "$work/s2.out" 'took over'
    expect_in "$work/s0.err" 'is unusable: rank 1'
    echo THAWED >"$frozen/freezer.state"
    expect_nothing_left 10
    rmdir "$frozen"
else
    echo "  (no freezer of control groups here: a worker that cannot be killed is not tried)"
fi
frozen=""
