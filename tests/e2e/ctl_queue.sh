#!/usr/bin/env bash
# ddpctl and a job that waits in Slurm's queue after a requeue: it is PENDING, says when it can start, and is cancelled by
# a stop, after a question. Slurm's commands are doubles.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun ddpctl
mkdir "$work/bin"
export PATH=$work/bin:$PATH
cd "$work"
cat >bin/squeue <<EOF
#!/bin/sh
cat $work/queue
EOF
cat >bin/scancel <<EOF
#!/bin/sh
echo "\$*" >>$work/cancelled
EOF
chmod +x bin/*
# Runs ddpctl to its end: arguments… Sets code; output in ctl.out and ctl.err.
ctl() { code=0; timeout 20 "$bin/ddpctl" "$@" >ctl.out 2>ctl.err </dev/null || code=$?; }

say "a job is stopped by a signal, and Slurm starts it again"
start job --nnodes=1 --rdzv-endpoint=127.0.0.1:0 --rdzv-id=8812.0 --ledger=directory:.ddprun --no-python \
    --nproc-per-node=1 sleep 310
wait_until 20 test -e .ddprun/8812.0/entry-000000.json || fail "no generation"
kill -TERM "${pid[job]}"
join job 30
expect_code 143
: >queue
ctl status
expect_code 1
expect_in ctl.err '^ddpctl: the job has ended with code 143'
echo '8812|8810_3|2026-11-29T14:36:00|BeginTime' >queue

say "it is PENDING, with the reason and the time"
ctl status
expect_code 0
expect_in ctl.out '^waits +PENDING: job 8810_3 waits in Slurm.s queue \(BeginTime\), and can start at 2026-11-29T14:36:00$'
expect_not_in ctl.out '^NODE'
ctl why
expect_code 0
expect_in ctl.out 'job 8810_3 waits in Slurm.s queue'
ctl status --json
expect_code 0
expect_in ctl.out '"phase": "pending"'

say "a stop asks first, and then cancels it"
ctl stop
expect_code 2
expect_in ctl.err 'job 8810_3 waits in Slurm.s queue .*; ddpctl stop --yes cancels it$'
[[ ! -e cancelled ]] || fail "cancelled without a question"
script -qec "$bin/ddpctl stop" /dev/null >ctl.out 2>&1 <<<"n" || true
expect_in ctl.out 'cancel it\? \[y/N\]'
expect_in ctl.out 'job 8810_3 is left in the queue'
[[ ! -e cancelled ]] || fail "cancelled after a no"
ctl stop --yes
expect_code 0
expect_in ctl.out '^job 8810_3 is cancelled: it waited in Slurm.s queue$'
expect_in cancelled '^--state=PENDING 8810_3$'
: >cancelled
script -qec "$bin/ddpctl stop" /dev/null >ctl.out 2>&1 <<<"y" || true
expect_in ctl.out 'job 8810_3 is cancelled'
expect_in cancelled '8810_3'
expect_nothing_left 5
