#!/usr/bin/env bash
# Hostile surroundings: sandboxes, containers, limits, missing and full file systems. In each of them a job of two
# workers either runs, or ddprun says why not in a line and ends with the right code. It never hangs or crashes, and
# nothing is left. Half of the rows need root, to make the surroundings. The workers are shells, or with the argument
# `train` our trainer: it has threads and descriptors of its own, and what cannot be had there is an error, no crash.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun ddpctl train
need_program python3
deny=$bin/../tests/deny_calls
[[ -x $deny ]] || fail "$deny is not built"

# What ddprun may say when a job runs.
usual='^ddprun: (OMP_NUM_THREADS=|generation 0: |the job has ended after )'

# Runs the job within some surroundings and looks at the end: its code, a pattern of the one line that says why (empty
# for a job that runs), then the words that make the surroundings, with JOB in the place of ddprun and its arguments.
worker=${1:-shell} own=$ddprun
((EUID != 0)) || for_others "$ddprun" "$deny" "$train"
if [[ $worker == train ]]; then
    job=(--standalone --nproc-per-node=2 --max-restarts=0 "$train" --steps 4 --samples 64 --hidden 4)
    has_run=checksum= lines=1 enough=24
else
    job=(--standalone --nproc-per-node=2 bash -c 'echo "worker $RANK"')
    has_run='worker [01]$' lines=2 enough=8
fi
usual_job=("${job[@]}")
# Other users have copies of the programs.
by_others() { ddprun=$work/ddprun job=("${usual_job[@]/#$train/$work/train}"); }
by_root() { ddprun=$own job=("${usual_job[@]}"); }
row() {
    local expected=$1 pattern=$2 word words=() begin=$SECONDS; shift 2
    for word in "$@"; do [[ $word == JOB ]] && words+=("$ddprun" "${job[@]}") || words+=("$word"); done
    code=0
    DDPRUN_TEST_MARK=$mark timeout --kill-after=5 20 "${words[@]}" \
        >"$work/run.out" 2>"$work/run.err" </dev/null || code=$?
    in_time 20 "$begin" || fail "no end"
    expect_code "$expected"
    expect_not_in "$work/run.err" 'terminate called|internal error at|core dumped|Segmentation'
    if [[ -n $pattern ]]; then
        (($(grep -cE "^ddprun: .*($pattern)" "$work/run.err") == 1)) || fail "not one line with \"$pattern\""
    fi
    if ((expected == 0)); then
        (($(grep -c "$has_run" "$work/run.out") == lines)) || fail "not both workers have run"
    fi
    if ((expected == 0)) && [[ -z $pattern ]]; then
        ! grep '^ddprun' "$work/run.err" | grep -vE "$usual" >"$work/complaints" ||
            fail "ddprun complains: $(<"$work/complaints")"
    fi
    expect_nothing_left
}
# A shell script before the job, for example one that mounts something: code, pattern, script, words…
row_after() {
    local expected=$1 pattern=$2 script=$3; shift 3
    row "$expected" "$pattern" "$@" bash -c "$script"$'\nexec "$@"' surroundings JOB
}

say "a sandbox or an old kernel that lacks system calls"
for call in close_range eventfd2 flock getrandom memfd_create mkfifo mlock2 pidfd_open pidfd_send_signal prlimit64 \
    sched_setaffinity setsid statx close_range,pidfd_open,pidfd_send_signal,statx,getrandom,memfd_create; do
    for error in ENOSYS EPERM; do row 0 "" "$deny" $error $call JOB; done
done
row 0 "" "$deny" ENOSYS clone3 JOB # the C library takes clone() then
for call in socketpair timerfd_create signalfd4 prctl; do
    row 126 "socketpair|timerfd|signalfd|SUBREAPER" "$deny" ENOSYS $call JOB
done
row 126 "no thread to be had" "$deny" EPERM clone3 JOB # it does not take clone() then

say "no process, thread or memory to be had"
# From the smallest limit with which the kernel can start ddprun to one that is enough. What is too little is said.
for megabytes in 24 26 28 30 32 36 40 44 48 56 64 80 96 128 192; do
    code=0
    prlimit --as=${megabytes}000000 "$ddprun" "${job[@]}" >"$work/run.out" 2>"$work/run.err" </dev/null || code=$?
    expect_not_in "$work/run.err" 'terminate called|internal error at'
    case $code in
        0) ;;
        126) expect_in "$work/run.err" '^ddprun: .*(no thread to be had|no memory left|cannot fork)' ;;
        *) # of the trainer: an error of its own, or what the C library and the C++ one say before main()
            [[ $worker == train ]] || fail "exit code $code with $megabytes MB"
            expect_in "$work/run.err" 'train: .*(no thread to be had|std::bad_alloc|annot allocate|failed to map)' ;;
    esac
    expect_nothing_left
done
if ((EUID == 0)); then
    # Limits of processes do not hold for root. This user has no others.
    install -d --owner=54321 "$TMPDIR/theirs"
    by_others
    user=(setpriv --reuid=54321 --regid=54321 --clear-groups env TMPDIR="$TMPDIR/theirs")
    row 126 "cannot fork the keeper" "${user[@]}" prlimit --nproc=1 JOB
    row 126 "no thread to be had" "${user[@]}" prlimit --nproc=2 JOB
    row 126 "no thread to be had|cannot fork for" "${user[@]}" prlimit --nproc=3 JOB
    # Each rank of the trainer has threads of its own.
    [[ $worker == shell ]] || row 1 "rank [01] .* exited with 1" "${user[@]}" prlimit --nproc=8 JOB
    row 0 "" "${user[@]}" prlimit --nproc=$enough JOB
    by_root
fi

say "signals that the caller has blocked or ignored"
row 0 "" "$deny" none - block JOB
row_after 0 "" 'trap "" TERM INT HUP QUIT CHLD PIPE USR1 USR2 TTOU TTIN TSTP ALRM URG IO XFSZ XCPU'
job=(--standalone --nproc-per-node=2 bash -c 'exit 7')
row_after 7 "rank [01] .* exited with 7" 'trap "" CHLD'
job=("${usual_job[@]}")

say "limits"
for limit in core=0 memlock=0 sigpending=0 msgqueue=0 nice=0 rtprio=0 locks=0 rss=0 rttime=0 nofile=64 stack=1000000; do
    row 0 "" prlimit --$limit JOB
done
for files in 0 3 8 15; do row 126 "the limit of open files is $files .*needed" prlimit --nofile=$files JOB; done
for files in 16 20; do row 126 "no descriptors (left for its pipes|to be had for it)" prlimit --nofile=$files JOB; done
row 126 "the limit of the stack is 64 KiB" prlimit --stack=65536 JOB
# The limit counts for files only, so a pipe can take what ddprun says.
row 126 "no memory file .*ulimit -f" bash -c 'prlimit --fsize=0 "$@" 2>&1 | cat >&2; exit ${PIPESTATUS[0]}' limited JOB

say "words and variables"
row 0 "" env LD_PRELOAD=/no/such.so LD_LIBRARY_PATH=/no JOB
row 0 "" env -i DDPRUN_TEST_MARK="$mark" PATH=/usr/bin:/bin OMP_NUM_THREADS=1 JOB
row 0 "" env LC_ALL=xx_YY LANG= TZ=:/no/such HOME= JOB
row 0 "" bash -c 'exec -a "" "$@"' surroundings JOB
# The longest argument that the kernel takes, and an environment that leaves no room for more variables.
[[ $worker == train ]] || row 0 "" bash -c 'exec "$@" "$(head -c 131071 /dev/zero | tr "\0" a)"' surroundings JOB
row_after 0 "" 'for i in {1..15}; do export V$i="$(head -c 100000 /dev/zero | tr "\0" a)"; done'
row_after 0 "" 'umask 0777'
row_after 0 "" 'mkdir "$TMPDIR/gone"; cd "$TMPDIR/gone"; rmdir "$TMPDIR/gone"'

say "closed descriptors"
row_after 0 "" 'exec <&-'
row_after 0 "" 'exec 2>&-'
row_after 0 "" 'exec <&- 2>&-; exec 3>/dev/null 5>/dev/null'
row_after 126 "" 'exec 2>&- <&-; ulimit -n 8'

if ((EUID != 0)); then
    echo "- the other surroundings can be made by root only"
    exit 0
fi

say "a cgroup whose pids or memory are at the limit"
in_group() { row "$1" "$2" bash -c "echo \$BASHPID >$group/cgroup.procs; exec \"\$@\"" in-group JOB; }
group=/sys/fs/cgroup/pids/$mark
[[ -d ${group%/*} ]] || group=/sys/fs/cgroup/$mark
if mkdir "$group" 2>/dev/null && [[ -e $group/pids.max ]]; then
    for most in 1 2 3 4; do
        echo $most >"$group/pids.max"
        in_group 126 "cannot fork the keeper|no thread to be had|cannot fork for"
    done
    echo $((2 * enough)) >"$group/pids.max"
    in_group 0 ""
    # An operator costs threads, which a node that has none left must not wait for. Later he is answered.
    echo max >"$group/pids.max"
    # shellcheck disable=SC2016
    DDPRUN_TEST_MARK=$mark bash -c 'echo $BASHPID >"$1/cgroup.procs"; shift; exec "$@"' in-group "$group" "$ddprun" \
        --nnodes=1 --rdzv-endpoint=127.0.0.1:0 --rdzv-id=few --ledger="directory:$work/.few" --nproc-per-node=1 \
        bash -c 'touch "$0/few.up"; while [[ ! -e $0/few.go ]]; do sleep 0.05; done' "$work" \
        >"$work/job.out" 2>"$work/job.err" </dev/null &
    pid[job]=$!
    wait_until 20 test -e "$work/few.up" || fail "the worker does not run"
    # The worker needs a process now and then.
    echo $(($(<"$group/pids.current") + 4)) >"$group/pids.max"
    ask() { timeout 20 "$bin/ddpctl" status --ledger="$work/.few" >"$work/ctl.out" 2>"$work/ctl.err"; }
    ! ask || fail "ddpctl was answered without threads"
    expect_in "$work/ctl.err" 'no thread is to be had on its host'
    echo max >"$group/pids.max"
    wait_until 20 ask || fail "ddpctl is not answered later"
    touch "$work/few.go"
    join job 20
    expect_code 0
    rmdir "$group"
fi
group=/sys/fs/cgroup/memory/$mark limit=memory.limit_in_bytes
[[ -d ${group%/*} ]] || group=/sys/fs/cgroup/$mark limit=memory.max
if mkdir "$group" 2>/dev/null && [[ -e $group/$limit ]]; then
    echo 16M >"$group/$limit"
    in_group 0 ""
    rmdir "$group"
fi

unshare -m true 2>/dev/null || skip "no mount namespace"
mounts() { row_after "$1" "$2" "$3" unshare -m "${@:4}"; }
# Covers /tmp with a file system that cannot be written.
no_tmp="$keep_clone && mount -t tmpfs none /tmp && $clone_back && mount -o remount,ro /tmp"

say "file systems that are missing, read-only or full"
mounts 0 "" 'mount -t tmpfs -o ro none /dev/shm' env -u TMPDIR
mounts 0 "" "$no_tmp" env -u TMPDIR
mounts 0 "" 'mount -t tmpfs -o size=64k none /dev/shm' env -u TMPDIR
mounts 0 "" 'mount -t tmpfs -o nr_inodes=5 none /dev/shm' env -u TMPDIR
mounts 0 "" 'mount -t tmpfs -o size=4k none /mnt' env TMPDIR=/mnt
mounts 0 "" true env TMPDIR=/no/such
nowhere="mount -t tmpfs -o ro none /dev/shm; $no_tmp"
mounts 0 "output without a file goes to the console" "$nowhere" env -u TMPDIR
mounts 0 "output without a file goes to the console" "mount -o bind / /; mount -o remount,bind,ro /; $nowhere" \
    env -u TMPDIR
for folder in /sys /etc; do mounts 0 "" "mount -t tmpfs none $folder"; done
mounts 0 "" 'mount -t tmpfs none /dev; mknod -m 666 /dev/null c 1 3' env -u TMPDIR

say "namespaces"
row 0 "" unshare --pid --fork --mount-proc JOB
row 0 "" unshare --user JOB
row 0 "" unshare --user --map-root-user --pid --fork --mount-proc JOB
# Ranks of a trainer need the loopback.
if [[ $worker == shell ]]; then row 0 "" unshare --net JOB; else row_after 0 "" 'ip link set lo up' unshare --net; fi
row_after 0 "" 'hostname ""' unshare --uts
! unshare --time true 2>/dev/null || row 0 "" unshare --time --boottime 1000000 --monotonic 1000000 --fork JOB

say "an ordinary user without any privilege"
chmod 1777 "$TMPDIR"
by_others
user=(setpriv --reuid=54321 --regid=54321 --clear-groups)
row 0 "" "${user[@]}" JOB
row 0 "" "${user[@]}" --no-new-privs --bounding-set=-all JOB
row_after 0 "" 'umask 0777' "${user[@]}"
mounts 0 "" 'mount -t proc -o hidepid=2 proc /proc; set -- setpriv --reuid=54321 --regid=54321 --clear-groups "$@"'
by_root

[[ $worker == shell ]] || exit 0
say "a full /dev/shm does not lose the exception: the report names the file system"
# Two workers of a job of one node; 300 MiB are room enough to begin with. The second one fills it before it fails.
job=(--standalone --nproc-per-node=2 --max-restarts=0 bash -c '((RANK == 0)) && exec sleep 300
    head -c 400M /dev/zero >/dev/shm/filler 2>/dev/null
    echo "{\"message\": \"lost\"}" >"$TORCHELASTIC_ERROR_FILE"; exit 9')
mounts 9 "" 'mount -t tmpfs -o size=300m none /dev/shm' env -u TMPDIR
expect_in "$work/run.err" 'error file /dev/shm/.* is empty; the file system /dev/shm \(300 MiB\) is full'

say "a FIFO where ddprun writes stops nothing: the workers read why they are stopped"
start job --standalone --nproc-per-node=2 bash -c '
    trap "[[ -f \$DDPRUN_STOP_FILE && -s \$DDPRUN_STOP_FILE ]] && touch $0/read.$RANK; exit 0" TERM
    ((RANK == 1)) || mkfifo "$DDPRUN_STOP_FILE" "$DDPRUN_STOP_FILE.part"
    touch "$0/up.$RANK"; while :; do sleep 0.05; done' "$work"
both_up() { [[ -e $work/up.0 && -e $work/up.1 ]]; }
wait_until 10 both_up || fail "the workers do not run"
kill -TERM "${pid[job]}"
join job 20
expect_code 143
[[ -e $work/read.0 && -e $work/read.1 ]] || fail "no stop file was written"
expect_nothing_left

say "a worker that floods its progress descriptor is named once; with another that floods its output no signal is late"
forget job
DDPRUN_TEST_MARK=$mark "$ddprun" --standalone --nproc-per-node=2 python3 -c '
import os
while True: os.write(3 if os.environ["RANK"] == "0" else 1, b"\n" * 65536)' >/dev/null 2>"$work/job.err" </dev/null &
pid[job]=$!
wait_until 60 has "$work/job.err" 'rank 0 floods its progress descriptor' || fail "it is not named"
kill -TERM "${pid[job]}"
join job 20
expect_code 143
(($(grep -c "rank 0 floods" "$work/job.err") == 1)) || fail "it is not named once"
expect_nothing_left

say "folders of past generations are removed"
job=(--standalone --nproc-per-node=2 --max-restarts=30 --crash-loop=0 bash -c '
    ((TORCHELASTIC_RESTART_COUNT == 30)) || exit 3
    echo "worker $RANK"
    for ((i = 0; RANK == 0 && i < 400; i++)); do # the last one goes beside the start: no worker waits for it
        ls "${TORCHELASTIC_ERROR_FILE%/*/*/*}" >"$0/attempts"
        (($(wc -l <"$0/attempts") > 2)) || break
        sleep 0.02
    done' "$work")
row 0 "all 2 workers of generation 30 succeeded" JOB
(($(wc -l <"$work/attempts") <= 2)) || fail "left: $(<"$work/attempts")"
