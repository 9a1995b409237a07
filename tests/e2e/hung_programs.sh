#!/usr/bin/env bash
# A program that ddprun starts hangs in the kernel (state D): it writes to a file system that is frozen. SIGKILL does not
# end it. For each such program: the job goes on, one line names the program, no second one is started meanwhile, and it
# is reaped when the file system is there again. All jobs run at the same time, since most limits are 30 s.
if [[ -z ${DDPRUN_TEST_APART:-} && $EUID == 0 ]]; then # mounts of its own
    DDPRUN_TEST_APART=1 exec unshare --mount --propagation private "$0" "$@"
fi
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_root
need_built ddprun
need_program mkfs.ext4
need_program fsfreeze
need_program python3

frozen=$work/frozen
mkdir "$frozen"
truncate -s 16M "$work/image"
mkfs.ext4 -q "$work/image"
mount -o loop "$work/image" "$frozen" 2>"$work/mount.err" || skip "no loop device here: $(<"$work/mount.err")"
clean_up() {
    [[ -z ${server:-} ]] || { kill -CONT "$server" && umount -l "$work/stopped"; } 2>/dev/null
    fsfreeze --unfreeze "$frozen" 2>/dev/null
    marked | xargs -r kill -9
    wait_until 5 umount "$frozen" 2>/dev/null
}

# A program that hangs: its name. Each lies in a folder of its own, so that no job finds another's.
hangs() {
    mkdir "$work/$1.bin"
    printf '#!/bin/sh\necho x >>"%s/%s"\n' "$frozen" "$1" >"$work/$1.bin/$1"
    chmod +x "$work/$1.bin/$1"
}
# How many of it hang: its name.
hanging() { pgrep -fc "^/bin/sh $work/$1.bin/$1( |\$)" || true; }
none_hangs() { (($(hanging "$1") == 0)); }
programs="event failure nvidia-smi getent munge unmunge squeue scontrol scancel py-spy eu-stack python3"
for name in $programs; do hangs $name; done
ln -s nvidia-smi.bin "$work/mig.bin"
# What answers beside them.
printf '#!/bin/sh\necho MUNGE:AwQFAAA=:\n' >"$work/unmunge.bin/munge"
printf '#!/bin/sh\nexit 1\n' >"$work/scontrol.bin/squeue"
# A job of two nodes whose batch host Slurm has taken out of it.
# shellcheck disable=SC2016
printf '#!/bin/sh\ncase "$*" in *"-s -h -o %%i -j"*) echo 8812.0; echo 8812.batch;; *) exit 1;; esac\n' >"$work/scancel.bin/squeue"
printf '#!/bin/sh\nprintf "JobId=8812\\n JobState=RUNNING\\n BatchFlag=1\\n NodeList=n[2-3]\\n BatchHost=n1\\n"\n' \
    >"$work/scancel.bin/scontrol"
# An interpreter that stands still.
mkdir "$work/stopped.bin"
printf '#!/bin/sh\nkill -STOP $$\n' >"$work/stopped.bin/python3"
chmod +x "$work/unmunge.bin/munge" "$work/scontrol.bin/squeue" "$work"/scancel.bin/s* "$work/stopped.bin/python3"
fsfreeze --freeze "$frozen"
# One whose own file system does not answer: it hangs in execve().
server=""
if [[ -c /dev/fuse ]]; then
    mkdir "$work/stopped"
    printf '#!/bin/sh\n' >"$work/unread"
    chmod +x "$work/unread"
    python3 "$e2e/one_file_fs.py" "$work/unread" "$work/stopped" unread 2>"$work/stopped.err" &
    server=$!
    wait_until 10 test -x "$work/stopped/unread" || skip "no file system can be mounted: $(<"$work/stopped.err")"
    kill -STOP "$server"
fi

# Workers that train until they are told to end.
trains='until [[ -e $0/end ]]; do sleep 0.1; done'
at=$(free_port)
for rank in 0 1; do
    program=()
    ((rank > 0)) || program=(--on-event="$work/event.bin/event")
    start event$rank --nnodes=2 --node-rank=$rank --rdzv-endpoint="127.0.0.1:$at" --rdzv-id="$mark-e" --identity=none \
        --lease=2 --nproc-per-node=1 --max-restarts=0 "${program[@]}" bash -c "$trains" "$work"
done
[[ -z $server ]] || start unread --standalone --nproc-per-node=1 --max-restarts=0 \
    --on-event="$work/stopped/unread" bash -c "$trains" "$work"
start failure --standalone --nproc-per-node=1 --max-restarts=0 --on-failure="$work/failure.bin/failure" bash -c 'exit 3'
at=$(free_port)
for rank in 0 1; do
    # shellcheck disable=SC2016
    PATH=$work/nvidia-smi.bin:$PATH start gpu$rank --nnodes=2 --node-rank=$rank --rdzv-endpoint="127.0.0.1:$at" \
        --rdzv-id="$mark-g" --identity=none --lease=2 --nproc-per-node=1 --max-restarts=1 --hang-timeout=4 \
        bash -c 'echo step=1 >&3; ((TORCHELASTIC_RESTART_COUNT)) || sleep 300'
done
PATH=$work/getent.bin:$PATH start getent --nnodes=2 --node-rank=1 --rdzv-endpoint="nowhere.$mark:$at" \
    --rdzv-id="$mark-n" --identity=none --join-timeout=20 true
at=$(free_port)
for rank in 0 1; do
    PATH=$work/munge.bin:$PATH start munge$rank --nnodes=2 --node-rank=$rank --rdzv-endpoint="127.0.0.1:$at" \
        --rdzv-id="$mark-m" --lease=2 --nproc-per-node=1 --max-restarts=0 sleep 1
done
at=$(free_port)
for rank in 0 1; do
    PATH=$work/unmunge.bin:$PATH start unmunge$rank --nnodes=2 --node-rank=$rank --rdzv-endpoint="127.0.0.1:$at" \
        --rdzv-id="$mark-u" --lease=2 --nproc-per-node=1 --max-restarts=0 --join-timeout=20 true
done
# shellcheck disable=SC2016
PATH=$work/eu-stack.bin:$PATH start eu-stack --standalone --nproc-per-node=1 --max-restarts=1 --hang-timeout=4 \
    bash -c 'echo step=1 >&3; ((TORCHELASTIC_RESTART_COUNT)) || sleep 300'
PATH=$work/py-spy.bin:$PATH start py-spy --standalone --nproc-per-node=1 --max-restarts=1 --hang-timeout=4 \
    --no-python python3 -c 'import os, time
os.write(3, b"step=1\n")
os.environ["TORCHELASTIC_RESTART_COUNT"] != "0" or time.sleep(300)'
# As a task of a step that srun has started: name, options of ddprun…
in_step() {
    PATH=$work/$1.bin:$PATH SLURM_JOB_ID=8812 SLURM_STEP_ID=0 SLURM_STEP_NODELIST=n1 SLURM_STEP_NUM_NODES=1 \
        SLURM_STEP_TASKS_PER_NODE=1 SLURM_NODEID=0 SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NTASKS=1 \
        start "$1" --nproc-per-node=1 --max-restarts=0 --ledger=memory "${@:2}" bash -c "$trains" "$work"
}
in_step squeue
in_step scontrol --requeue-signal=USR1

# One node of two in a step, of a job whose srun does not answer any more.
PATH=$work/scancel.bin:$PATH SLURM_JOB_ID=8812 SLURM_STEP_ID=0 SLURM_STEP_NODELIST="$(uname -n),n3" SLURM_STEP_NUM_NODES=2 \
    SLURM_STEP_TASKS_PER_NODE="1(x2)" SLURM_NODEID=0 SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NTASKS=2 \
    SLURM_LAUNCH_NODE_IPADDR=255.255.255.255 start scancel --nnodes=1:2 --nproc-per-node=1 --max-restarts=0 \
    --rdzv-endpoint="$(uname -n):$(free_port)" --last-call=0.5 --ledger=memory --identity=none true
touch "$work/script.py"
for name in stopped python3; do
    PATH=$work/$name.bin:$PATH start check-$name --standalone --check "$work/script.py"
done
[[ -z $server ]] || PYTHON_EXEC=$work/stopped/unread start check-unread --standalone --check "$work/script.py"
[[ -z $server ]] || PATH=$work/stopped:$PATH start check-place --standalone --check "$work/script.py"
# The driver of a divided GPU, whose instances nvidia-smi knows.
mig=no
if [[ -d /proc/driver ]]; then
    mkdir -p "$work/driver/nvidia/gpus/0000:3B:00.0" "$work/driver/nvidia/capabilities/gpu0/mig/gi1"
    echo 'GPU UUID: GPU-a' >"$work/driver/nvidia/gpus/0000:3B:00.0/information"
    printf '#!/bin/sh\nmount --bind "%s" /proc/driver && exec "%s" "$@"\n' "$work/driver" "$ddprun" >"$work/in_mig"
    printf '#!/bin/sh\nexec unshare --mount --propagation private "%s" "$@"\n' "$work/in_mig" >"$work/with_mig"
    chmod +x "$work/in_mig" "$work/with_mig"
    PATH=$work/mig.bin:$PATH ddprun=$work/with_mig start mig --standalone --nproc-per-node=1 true
    mig=yes
fi

# So many programs of this name hang, one on each node (1), and one line of a job says so: name, job, how many.
named_once() {
    wait_until 45 has "$work/$2.err" "[ /]$1 \(process [0-9]+\) hangs in the kernel" || fail "nobody names $1"
    (($(grep -c 'hangs in the kernel: it has not ended' "$work/$2.err") == 1)) || fail "not one line names $1"
    (($(hanging "$1") == ${3:-1})) || fail "$(hanging "$1") of $1 hang"
}

say "nvidia-smi, when a hang is examined: the job is restarted on both nodes"
for rank in 0 1; do
    join gpu$rank 60
    expect_code 0
done
named_once nvidia-smi gpu0 2
expect_not_in "$work/gpu0.err" 'its keeper has killed it'

say "munge, when the nodes look for a secret: they go on without"
for rank in 0 1; do
    join munge$rank 60
    expect_code 0
done
named_once munge munge0 2

say "unmunge, when a node proves who it is: it is not let in, and the leader ends when it has waited"
for rank in 0 1; do
    join unmunge$rank 60
    expect_code 69
done
named_once unmunge unmunge1 "$(hanging unmunge)"

say "py-spy and eu-stack, when a hang is examined: the job is restarted"
for name in py-spy eu-stack; do
    join $name 60
    expect_code 0
    named_once $name $name
done

say "getent, when the endpoint is looked up"
join getent 60
expect_code 69
named_once getent getent

say "squeue, when the end of the job is asked for"
named_once squeue squeue

say "scontrol, when the job goes back into the queue"
wait_until 20 has "$work/scontrol.err" 'generation 0: ' || fail "no generation"
kill -USR1 "${pid[scontrol]}"
join scontrol 90
named_once scontrol scontrol
expect_not_in "$work/scontrol.err" 'its keeper has killed it'

say "scancel, when the allocation has lost its batch host: the job ends with its own code"
join scancel 60
expect_code 0
named_once scancel scancel
expect_in "$work/scancel.err" 'job 8812 has lost its batch host, but ddprun cannot end it: scancel: scancel did not answer within 10.0 s'

say "an interpreter that stands still or hangs, for --check: it is what is wrong"
for name in stopped python3 ${server:+unread}; do
    join check-$name 120 # after its report the keeper waits for the process that does not end
    expect_code 69
    expect_in "$work/check-$name.out" 'workers  WRONG'
    expect_in "$work/check-$name.out" ': program .*(python3|unread): no answer within 20.0 s; it stands still, or the file'
done
[[ -z $server ]] || {
    join check-place 30
    expect_code 69
    expect_in "$work/check-place.err" "^ddprun: $work/stopped does not answer within 10.0 s: programs are looked for"
}

say "nvidia-smi -L, when a divided GPU is found at the start: the job runs without its instances"
[[ $mig == no ]] || {
    join mig 60
    expect_code 0
    expect_in "$work/mig.err" 'the MIG instances .* are unknown: nvidia-smi \(process [0-9]+\) hangs in the kernel: .*CUDA_VISIBLE_DEVICES$'
}

say "the program of --on-failure: the job ends with its code"
join failure 60
expect_code 3
named_once failure failure

say "the program of --on-event: the job goes on, also with another keeper, and later events start no second one"
named_once event event0
kill -KILL "$(pgrep -P "${pid[event0]}" job-keeper)"
wait_until 20 has "$work/event0.err" 'generation 1: ' || fail "the job does not go on"
[[ -z $server ]] || wait_until 45 has "$work/unread.err" 'unread hangs in the kernel: the file system of its program' ||
    fail "nobody names a program that cannot be read"
touch "$work/end"
[[ -z $server ]] || { join unread 60; expect_code 0; }
for name in event0 event1 squeue; do
    join $name 60
    expect_code 0
done
named_once event event0
expect_not_in "$work/event0.err" 'its keeper has killed it'

say "they end when the file system is there again"
fsfreeze --unfreeze "$frozen"
[[ -z $server ]] || kill -CONT "$server"
for name in $programs; do
    wait_until 10 none_hangs $name || fail "$name is left"
done
expect_nothing_left 5
