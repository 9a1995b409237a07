#!/usr/bin/env bash
# ddpctl logs and ddpctl stacks: what a worker of a running job prints and where it is, on loopback, with the worker on
# the node that does not lead. First what an operator wants; then what goes wrong: other secrets, workers that flood,
# forge or stand still, readers that stop or are killed.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun ddpctl
need_program python3
need_root # each node gets a host name of its own
unshare --uts true 2>/dev/null || skip "host names cannot be set here"

# A worker counts its steps, and does what it is told in a file of its rank. It writes its newest step there.
cat >"$work/worker.py" <<'PYTHON'
import os
import sys
import time

rank, folder = os.environ["RANK"], sys.argv[1]


def told():
    try:
        with open(f"{folder}/tell.{rank}") as file:
            text = file.read()
        os.remove(f"{folder}/tell.{rank}")
        return text
    except FileNotFoundError:
        return "pass"


def known_function():
    step = 0
    while True:
        print(f"rank {rank} step {step}", flush=True)
        exec(told())
        with open(f"{folder}/step.{rank}.new", "w") as file:
            file.write(f"{step}\n")
        os.replace(f"{folder}/step.{rank}.new", f"{folder}/step.{rank}")
        step += 1
        time.sleep(0.05)


print("begins", file=sys.stderr, flush=True)
known_function()
PYTHON
tell() { echo "$2" >"$work/tell.$1.new" && mv "$work/tell.$1.new" "$work/tell.$1"; } # rank, statements of Python

ddpctl=$bin/ddpctl
cat >"$work/in_host" <<'EOF2'
#!/bin/sh
exec unshare --uts -- sh -c 'hostname "$0"; exec "$@"' "$HOST_NAME" "$REAL_DDPRUN" "$@"
EOF2
chmod +x "$work/in_host"
export REAL_DDPRUN=$ddprun
ddprun=$work/in_host
for name in ours theirs; do (umask 077; head -c 32 /dev/urandom | base64 >"$work/$name"); done
ledger=$work/ledger
access=(--ledger="$ledger" --secret-file="$work/ours")

# Starts both nodes of a job: id, more options.
start_job() {
    local id=$1 at rank; shift
    at=$(free_port)
    for rank in 0 1; do
        HOST_NAME=n$((rank + 1)) start "n$((rank + 1))" --nnodes=2 --node-rank="$rank" --rdzv-id="$id" \
            --rdzv-endpoint="127.0.0.1:$at" --lease=30 --max-restarts=9 --ledger="directory:$ledger" \
            --secret-file="$work/ours" "$@" python3 "$work/worker.py" "$work"
    done
}
# Runs ddpctl: arguments… Sets code; output in $work/ctl.out and ctl.err.
ctl() {
    code=0
    timeout 60 "$ddpctl" "$@" "${access[@]}" >"$work/ctl.out" 2>"$work/ctl.err" </dev/null || code=$?
}
# Follows a rank in the background: name, rank, options… Its process id is in ${reader[name]}.
declare -A reader
follow() {
    local name=$1 rank=$2; shift 2
    forget "$name"
    "$ddpctl" logs "$rank" -f "${access[@]}" "$@" >"$work/$name.out" 2>"$work/$name.err" </dev/null &
    reader[$name]=$!
}
clean_up() { for one in "${reader[@]}"; do kill -CONT "$one"; kill -KILL "$one"; done 2>/dev/null; }
logs_have() { ctl logs "$@" && has "$work/ctl.out" "$pattern"; }
step_of() { cat "$work/step.$1" 2>/dev/null || echo -1; }
goes_on() { (($(step_of "$1") > $2)); }
expect_progress() { # within 20 s
    local now
    now=$(step_of 1)
    wait_until 20 goes_on 1 "$now" || fail "rank 1 does not go on"
}
memory_of() { sed -n 's/^VmRSS:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$1/status"; } # KiB
ddprun_on() { # the ddprun below in_host: name
    local id=${pid[$1]}
    while [[ $(cat "/proc/$id/comm") != ddprun ]]; do id=$(pgrep -P "$id" | head -n 1); done
    echo "$id"
}

say "the last lines of a worker on the node that does not lead, and where it is"
start_job "$mark.1"
pattern='^rank 1 step [1-9]'
wait_until 30 logs_have 1 || fail "no lines of rank 1"
ctl status
expect_in "$work/ctl.out" 'led by n1'
ctl logs 1 --lines=2
expect_code 0
(($(wc -l <"$work/ctl.out") == 2)) || fail "not two lines"
expect_not_in "$work/ctl.out" 'rank 0'
ctl logs 1 --lines=10000
expect_in "$work/ctl.out" '^begins$'
expect_in "$work/ctl.out" '^rank 1 step 0$'
ctl logs 0 --lines=1 --json
expect_in "$work/ctl.out" '^\{"rank":0,"generation":0,"node":"n1","stream":"stdout","line":"rank 0 step [0-9]+"\}$'
ctl stacks 1
expect_code 0
expect_in "$work/ctl.out" '^rank 1 of generation 0: process [0-9]+ on n2$'
expect_in "$work/ctl.out" 'in known_function \(.*worker.py:[0-9]+\), called by'
ctl stacks 0 --json
expect_in "$work/ctl.out" '"node": "n1"'
expect_in "$work/ctl.out" 'known_function'
expect_progress

say "what there is not: a rank, a number, the secret"
ctl logs 2
expect_code 1
expect_in "$work/ctl.err" 'there is no rank 2: generation 0 has ranks 0 to 1'
ctl stacks 2
expect_code 1
for words in 'logs one' 'logs -- -1' 'logs' 'logs 1 2 3' 'logs 1 --lines=10001' 'stacks'; do
    # shellcheck disable=SC2086
    ctl $words
    expect_code 2
done
for command in logs stacks; do
    code=0
    "$ddpctl" "$command" 1 --ledger="$ledger" --secret-file="$work/theirs" >"$work/ctl.out" 2>"$work/ctl.err" || code=$?
    expect_code 77
    [[ ! -s $work/ctl.out ]] || fail "another secret gets something"
done

say "it is followed over a restart; every line comes once"
follow whole 1 --lines=10000
follow json 1 --json
wait_until 20 has "$work/whole.out" '^rank 1 step 3$' || fail "nothing to follow"
wait_until 20 has "$work/json.out" '"line":"rank 1 step' || fail "nothing to follow as JSON"
expect_progress
tell 0 'os._exit(3)'
wait_until 60 has "$work/whole.err" 'rank 1 goes on in generation 1 on n2: rank 0 .*exited with 3' ||
    fail "no next generation"
wait_until 20 has "$work/json.out" '"generation":1,"node":"n2","event":"goes on"' || fail "no event"
both_reach_3() { (($(grep -c '^rank 1 step 3$' "$work/whole.out") == 2)); }
wait_until 20 both_reach_3 || fail "nothing of the next generation"
sed -n 's/^rank 1 step //p' "$work/whole.out" |
    awk '$1 == 0 {++rows; last = 0; next} $1 != last + 1 {bad = 1} {last = $1} END {exit rows != 2 || bad}' ||
    fail "lines are missing or twice"

say "a worker that floods, and a reader that has stopped: the job goes on, memory is bounded, the loss is told"
follow stopped 1
wait_until 20 has "$work/stopped.out" 'rank 1 step' || fail "nothing to follow"
node=$(ddprun_on n2)
# A flood costs some memory by itself, which stays. So the first one has a reader who reads.
has_come() { tail -n 100 "$work/n2.out" | grep -qE "$1\$"; } # the whole file would be megabytes each time
flood() { # lines, their first word
    tell 1 "for i in range($1): print('$2', i)"
    wait_until 60 has_come "$2 $(($1 - 1))" || fail "the flood does not end"
    expect_progress
}
flood 500000 first # 6 MB, three times what a reader who has stopped may cost
before=$(memory_of "$node")
kill -STOP "${reader[stopped]}"
flood 500000 flood
after=$(memory_of "$node")
((before > 0 && after < before + 2048)) ||
    fail "the reader who has stopped costs $((after - before)) KiB"
kill -CONT "${reader[stopped]}"
wait_until 20 has "$work/stopped.err" '[0-9]+ lines \([0-9]+ bytes\) missing here' || fail "the loss is not told"
wait_until 20 has "$work/stopped.out" '^flood 499999$' || fail "the newest lines do not come"
lost() { sed -n 's/^ddpctl: \([0-9]*\) lines* (.*/\1/p' "$work/stopped.err" | awk '{all += $1} END {print all + 0}'; }
read_all() { (($(grep -c '^flood [0-9]*$' "$work/stopped.out") + $(lost) >= 500000)); }
wait_until 20 read_all || fail "$(lost) lines are said to be lost, and $(grep -c flood "$work/stopped.out") have come"
kill "${reader[stopped]}"

say "a line of 10 MB without an end, and then one more"
follow long 1
wait_until 20 has "$work/long.out" 'rank 1 step' || fail "nothing to follow"
tell 1 'print("x" * 10_000_000, end="", flush=True); time.sleep(1); print(); print("after the long one")'
wait_until 30 has "$work/long.out" '^after the long one$' || fail "nothing after the long line"
ctl logs 1
expect_in "$work/ctl.out" 'step|after the long one'
kill "${reader[long]}"
expect_progress

say "a worker can neither control the terminal nor pretend to be ddpctl; a file gets its bytes"
tell 1 'sys.stdout.write("\x1b]0;owned\x07\x1b[2Jx\rddpctl: forged\n\x1b[31mred\x1b[0m\n"); sys.stdout.flush()'
pattern=$'^\x1b\\[31mred\x1b\\[0m$'
wait_until 20 logs_have 1 --lines=100 || fail "a file does not get the bytes"
TERM=xterm script -qec "$ddpctl logs 1 --lines=10000 ${access[*]}" /dev/null >"$work/terminal.out" 2>&1 </dev/null
expect_in "$work/terminal.out" '^\[n2:1\]:\\x1b\]0;owned\\x07\\x1b\[2Jx'
expect_not_in "$work/terminal.out" $'\x1b[^[]' # ESC [ K, which clears a line, is ddpctl's own
expect_not_in "$work/terminal.out" $'\x1b\\[[^K]'
expect_not_in "$work/terminal.out" '^ddpctl: forged'
expect_in "$work/terminal.out" '^\[n2:1\]:red'

say "readers are killed in the middle, more than there are places"
for i in {1..40}; do
    follow killed 1
    wait_until 20 has "$work/killed.out" 'rank 1 step' || fail "reader $i gets nothing"
    kill -KILL "${reader[killed]}"
    wait "${reader[killed]}" 2>/dev/null || true
done

say "a frozen worker: its last lines, and where it stands"
frozen=$(sed -n 's/^rank 1 of .*: process \([0-9]*\) .*/\1/p' <("$ddpctl" stacks 1 "${access[@]}"))
kill -STOP "$frozen"
is_stopped() { ctl stacks 1 && has "$work/ctl.out" "thread $frozen .*is stopped"; }
wait_until 20 is_stopped || fail "stacks do not say that it is stopped"
expect_in "$work/ctl.out" 'known_function'
ctl logs 1
expect_in "$work/ctl.out" 'rank 1 step'
kill -CONT "$frozen"
expect_progress

say "a node whose ddprun is frozen is named; its workers go on"
kill -STOP "$node"
expect_progress
ctl stacks 1
kill -CONT "$node"
expect_code 69
expect_in "$work/ctl.err" 'n2 does not answer'
pattern='^rank 1 step'
wait_until 60 logs_have 1 || fail "rank 1 does not answer again"

say "the end: the last line comes, and it is said how the job has ended"
follow last 1
wait_until 20 has "$work/last.out" 'rank 1 step' || fail "nothing to follow"
# 400 KB at once, and nothing after it: all of it has to reach the reader before the node leaves.
tell 1 'import signal
def leave(*_):
    for i in range(20000):
        print("last words", i)
    sys.stdout.flush()
    os._exit(0)
signal.signal(signal.SIGTERM, leave)'
expect_progress
expect_progress
ctl stop
expect_code 0
for name in n1 n2; do
    join "$name" 60
    expect_code 143
done
for name in whole last; do
    wait_until 20 ended "${reader[$name]}" || fail "$name does not end"
    wait "${reader[$name]}" || fail "$name ends with $?"
    expect_in "$work/$name.out" '^last words 19999$'
    expect_in "$work/$name.err" 'the job has ended with code 143'
done
wait_until 20 has "$work/json.out" '"event":"job ended".*143' || fail "no last event"
ctl logs 1
expect_code 1
expect_in "$work/ctl.err" 'the job has ended with code 143'
expect_nothing_left 5

say "a generation without the rank is waited out, until the job ends"
start_job "$mark.2" --nnodes=1:2
pattern='^rank 1 step [1-9]'
wait_until 40 logs_have 1 || fail "no lines of rank 1"
follow small 1
wait_until 20 has "$work/small.out" 'rank 1 step' || fail "nothing to follow"
kill -KILL "$(ddprun_on n2)"
wait_until 60 has "$work/small.err" 'there is no rank 1: generation 1 has ranks 0 to 0; waiting for a generation' ||
    fail "it is not said that the rank is missing"
ctl stop
expect_code 0
join n1 60
expect_code 143
wait_until 20 ended "${reader[small]}" || fail "it does not end with the job"
wait "${reader[small]}" || fail "it ends with $?"
expect_in "$work/small.err" 'the job has ended with code 143'
join n2 10
expect_nothing_left 5
