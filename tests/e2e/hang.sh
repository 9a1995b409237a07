#!/usr/bin/env bash
# Workers that report progress and then stand still: the hang is found, the report says where they are, and the job
# restarts. Then blame: a node that fails twice is replaced by a spare.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun train ../tests/deny_calls

# Reports a step every 50 ms, then stands still: the rank in $slow at step 4, the others at step 6. Generation $good (1)
# succeeds at once.
cat >"$work/worker.sh" <<'WORKER'
report() { echo "step=$1" >&"$DDPRUN_PROGRESS_FD"; }
[[ $TORCHELASTIC_RESTART_COUNT == "${good:-1}" ]] && { report 1; exit 0; }
for step in 1 2 3 4 5 6; do
    report $step
    ((RANK == slow && step == 4)) && exec sleep 331
    sleep 0.05
done
exec sleep 332
WORKER

say "a hang: the slowest rank is named with what it is doing, and all workers restart"
slow=1 run 60 --standalone -v --nproc-per-node=3 --hang-timeout=1 --lease=2 --max-restarts=1 bash "$work/worker.sh"
expect_code 0
expect_in "$work/run.err" 'no rank has made progress for [0-9.]+ s .--hang-timeout 1.0 s.; the slowest is rank 1 .local 1 on .*, at step 4; generation 0 ends'
expect_in "$work/run.err" 'rank 1 .local 1 on .*, at step 4:$'
expect_in "$work/run.err" 'rank 0 .local 0 on .*, at step 6:$'
expect_in "$work/run.err" 'thread [0-9]+ .sleep. sleeps in clock_nanosleep'
expect_in "$work/run.err" 'restart 1 of 1'
expect_in "$work/run.err" ' 1 restart, [0-9.]+ s lost, (nearly all|most of it|the longest part) in [a-z ]+$'
expect_in "$work/run.err" ' lost in restarts: [0-9.]+ s detected, .* stopped, .* gone, .* met, .* started, .* store contact, .* progress$'
expect_in "$work/run.err" ' longest: generation 1, [0-9.]+ s in detected$'
expect_nothing_left

say "without a restart left: the report says the same, and the exit code is 124"
slow=2 start job --standalone --nproc-per-node=3 --hang-timeout=1 --lease=2 --max-restarts=0 bash "$work/worker.sh"
join job 60
expect_code 124
expect_in "$work/job.err" 'meaning   : no rank has made progress .*the slowest is rank 2'
expect_in "$work/job.err" 'stacks    : where the slowest ranks are$'
expect_nothing_left

say "a worker that keeps reporting, or never reports, is left alone"
start reports --standalone --nproc-per-node=2 --hang-timeout=1 --lease=2 --max-restarts=0 bash -c '
    ((RANK == 0)) && { sleep 4; exit 0; }
    for step in {1..40}; do echo "step=$step" >&"$DDPRUN_PROGRESS_FD"; sleep 0.1; done'
start silent --standalone --nproc-per-node=2 --hang-timeout=1 --lease=2 --max-restarts=0 sleep 3
for name in reports silent; do
    join $name 60
    expect_code 0
    expect_not_in "$work/$name.err" 'no rank has made progress'
done
(($(grep -c 'no rank has reported progress in .* ends the job only if all its workers stand still' "$work/silent.err") == 1)) || fail "not said once"
expect_nothing_left

say "a loss that is not a number is told once, with its rank and step"
run 60 --standalone --nproc-per-node=2 bash -c '
    for step in 1 2 3 4; do
        echo "step=$step loss=$( ((RANK == 1 && step >= 2)) && echo nan || echo 0.5)" >&"$DDPRUN_PROGRESS_FD"
    done'
expect_code 0
(($(grep -c 'rank 1 .local 1. has reported loss=nan at step 2; it is said once' "$work/run.err") == 1)) || fail "not told once"
expect_nothing_left

say "where the memory of workers may not be read, those of Python write where they are before they are ended"
cat >"$work/hangs.py" <<'WORKER'
import os, threading, time

def evaluate():
    time.sleep(334)

def tells():
    time.sleep(334)

print("its last words")
threading.Thread(target=tells, daemon=True).start()
for step in range(5):
    os.write(int(os.environ["DDPRUN_PROGRESS_FD"]), b"step=%d\n" % step)
evaluate()
WORKER
# Runs it where nobody may read memory: options.
unread() {
    forget unread
    (cd "$work" && ulimit -c unlimited && DDPRUN_TEST_MARK=$mark exec "$bin/../tests/deny_calls" EPERM process_vm_readv \
        "$ddprun" --standalone --nproc-per-node=2 --hang-timeout=1 --lease=2 --max-restarts=0 "$@" hangs.py) \
        >"$work/unread.out" 2>"$work/unread.err" </dev/null &
    pid[unread]=$!
    join unread 60
    expect_code 124
    expect_in "$work/unread.err" 'no functions of Python in process [0-9]+, because its memory may not be read'
}
unread
for rank in 0 1; do
    expect_in "$work/unread.err" "rank $rank .*, as it wrote itself when SIGABRT ended it:\$"
done
(($(grep -c 'in evaluate .*hangs.py:4., called by <module> .*hangs.py:13.$' "$work/unread.err") == 2)) || fail "the functions are missing"
expect_in "$work/unread.err" 'tells .*hangs.py:7.$'
expect_in "$work/unread.err" '^    its last words'
[[ -z $(compgen -G "$work/core*") ]] || fail "there is a core dump"
expect_nothing_left
PYTHONFAULTHANDLER='' unread
expect_not_in "$work/unread.err" 'as it wrote|Fatal Python error'
expect_nothing_left

say "in a program of the trainer library the rank whose gradient was first no number is named"
run 60 --standalone --nproc-per-node=2 --max-restarts=0 --no-python "$train" --steps 100 --lr=1e6 --momentum=1
expect_code 1
named=$(sed -En 's/.*the gradient of "(w[12])" is not a finite number on rank ([01]).*/rank \2 .local \2. has reported gradient.\1=nan after step [0-9]+; it is said once/p' \
    "$work/run.err" | head -n 1)
expect_in "$work/run.err" "${named:-is not a finite number}"
(($(grep -c 'has reported gradient' "$work/run.err") == 1)) || fail "not told once"
expect_nothing_left

# Hosts are blamed by name, so each node runs with a host name of its own: name, options and worker.
((EUID == 0)) && unshare --uts true 2>/dev/null || skip "the rest needs root and name spaces"
node() {
    local name=$1; shift
    forget "$name"
    DDPRUN_TEST_MARK=$mark unshare --uts bash -c 'echo "$1" >/proc/sys/kernel/hostname; shift; exec "$@"' _ "$name" \
        "$ddprun" --nnodes=2 --rdzv-endpoint="127.0.0.1:$at" --rdzv-id="$mark" --lease=2 --last-call=1 \
        --nproc-per-node=1 --max-restarts=3 "$@" >"$work/$name.out" 2>"$work/$name.err" </dev/null &
    pid[$name]=$!
}
# Whether all these nodes have run in a generation: generation, names.
all_run() {
    local generation=$1 name; shift
    for name in "$@"; do [[ -e $work/ran.$generation.$name ]] || return 1; done
}
# On the node named bad the worker fails in every generation. The others wait until they are stopped, or succeed in
# generation 2. Each waits for the file go.GENERATION.
worker=(bash -c 'touch "$0/ran.$TORCHELASTIC_RESTART_COUNT.$(</proc/sys/kernel/hostname)"
    until [[ -e $0/go.$TORCHELASTIC_RESTART_COUNT ]]; do sleep 0.02; done
    [[ $(</proc/sys/kernel/hostname) != bad ]] || exit 3
    [[ $TORCHELASTIC_RESTART_COUNT != 2 ]] && exec sleep 333
    exit 0' "$work")

say "a log folder that is full: said once, and the hang ends the job as ever"
# In a name space of its own, so that nothing stays mounted.
cat >"$work/full.sh" <<'FULL'
mkdir "$1/full" && mount -t tmpfs -o size=64k full "$1/full" && mkdir "$1/full/logs"
head -c 100000 /dev/zero >"$1/full/rest" 2>/dev/null
exec "${@:2}"
FULL
forget full
DDPRUN_TEST_MARK=$mark unshare --mount bash "$work/full.sh" "$work" "$ddprun" --standalone --nproc-per-node=2 --hang-timeout=1 \
    --lease=2 --max-restarts=1 --log-dir="$work/full/logs" "$work/hangs.py" >"$work/full.out" 2>"$work/full.err" </dev/null &
pid[full]=$!
join full 60
expect_code 124
(($(grep -c 'cannot be kept in standstill.txt: cannot be written: No space left' "$work/full.err") == 1)) || fail "not said once"
expect_in "$work/full.err" 'at step 4; generation 1 ends'
expect_nothing_left

say "workers of another user, also where /proc hides them: said once, and the job is judged by its progress"
# Without CAP_SYS_PTRACE root may not look at them, but may still end them. Without CAP_SYS_RESOURCE it cannot forbid
# them a core dump, so they get no SIGABRT.
others() {
    local name=$1; shift
    forget "$name"
    DDPRUN_TEST_MARK=$mark "$@" setpriv --inh-caps=-sys_ptrace,-sys_resource \
        --bounding-set=-sys_ptrace,-sys_resource "$ddprun" --standalone \
        --nproc-per-node=2 --hang-timeout=14 --lease=2 --max-restarts=0 --no-python setpriv --reuid=65534 --clear-groups \
        /usr/bin/python3 -c "$(cat "$work/hangs.py")" >"$work/$name.out" 2>"$work/$name.err" </dev/null &
    pid[$name]=$!
}
others seen
# shellcheck disable=SC2016
others hidden unshare --mount bash -c 'mount -t proc -o hidepid=2,gid=4711 proc /proc && exec "$@"' _
for name in seen hidden; do
    join $name 60
    expect_code 124
    expect_in "$work/$name.err" 'no rank has made progress for .*; the slowest is rank 0 .local 0 on .*, at step 4; generation 0 ends'
    (($(grep -c 'nobody can tell who waits for whom .another user.s process, hidepid,' "$work/$name.err") == 1)) || fail "$name: not said once"
done
expect_in "$work/seen.err" 'no functions of Python in process [0-9]+, because its memory may not be read'
expect_not_in "$work/seen.err" 'as it wrote itself'
expect_not_in "$work/hidden.err" 'no functions of Python|thread [0-9]+'
expect_nothing_left

say "on two nodes: the slowest rank is found, and its stack comes over the network"
at=$(free_port)
export slow=1
node one --node-rank=0 --hang-timeout=1 bash "$work/worker.sh"
node two --node-rank=1 --hang-timeout=1 bash "$work/worker.sh"
for name in one two; do join $name 60; expect_code 0; done
expect_in "$work/one.err" 'the slowest is rank 1 .local 0 on two., at step 4; generation 0 ends'
expect_in "$work/one.err" 'rank 1 .local 0 on two., at step 4:$'
expect_in "$work/one.err" 'thread [0-9]+ .sleep. sleeps in clock_nanosleep'
expect_nothing_left

for blame in on off; do
    say "a node that fails twice is replaced by a spare and named; with --blame=off it stays (now $blame)"
    rm -f "$work"/{ran,go}.*
    at=$(free_port)
    last=spare
    [[ $blame == on ]] || last=bad
    node good --node-rank=0 --blame=$blame "${worker[@]}"
    node bad --node-rank=1 --blame=$blame "${worker[@]}"
    wait_until 20 all_run 0 good bad || fail "the workers do not run"
    node spare --verbose --blame=$blame "${worker[@]}"
    wait_until 20 has "$work/spare.err" 'it is a spare' || fail "the third node does not wait"
    for generation in 0 1; do
        touch "$work/go.$generation"
        # Only the second failure leads to blame, so the first restart keeps the node.
        [[ $generation == 1 ]] && next=$last || next=bad
        wait_until 20 all_run $((generation + 1)) good $next || fail "generation $((generation + 1)) does not run on good and $next"
    done
    touch "$work/go.2"
    # Without blame bad fails in generation 2, too.
    [[ $blame == on ]] || touch "$work/go.3"
    for name in good bad spare; do join $name 60; done
    if [[ $blame == on ]]; then
        expect_code 0
        expect_in "$work/good.err" 'bad caused the end of generations 0 and 1; a spare replaces it'
        expect_in "$work/good.err" 'for the next submission: sbatch --exclude=bad$'
    else
        expect_not_in "$work/good.err" 'exclude'
    fi
    expect_nothing_left
done
