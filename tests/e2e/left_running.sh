#!/usr/bin/env bash
# What workers leave running when they succeed, such as an upload: it gets SIGTERM and is named, or the job waits for it
# (--wait-for-helpers). By the name torchrun, outside Slurm, it runs on.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun
mkdir "$work/programs"
ln -s "$ddprun" "$work/programs/torchrun"

# A worker starts an upload and succeeds when that is under way: how it is started, folder. The upload is done when the
# file `go` exists. It ends in good order at SIGTERM.
cat >"$work/uploads.py" <<'P'
import os, subprocess, sys, time

how, folder = sys.argv[1:]
rank = os.environ["RANK"]
upload = f"""trap 'echo stopped >{folder}/end.{rank}; exit' TERM
touch {folder}/up.{rank}
until [ -e {folder}/go ]; do sleep 0.02; done
echo uploaded >{folder}/end.{rank}"""
quiet = dict(stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
subprocess.Popen(["sh", "-c", upload], start_new_session=how != "plain", **(quiet if how == "quiet" else {}))
while not os.path.exists(f"{folder}/up.{rank}"):
    time.sleep(0.01)
os.write(int(os.environ["DDPRUN_PROGRESS_FD"]), b"step=1\n")
P
ends() { [[ $(cat "$work/end.0" "$work/end.1" 2>/dev/null) == "$1"$'\n'"$1" ]]; }
begin() { # how, options…
    rm -f "$work"/{up,end}.* "$work/go"
    start job --standalone --nproc-per-node=2 "${@:2}" "$work/uploads.py" "$1" "$work"
}
# Both workers have ended, and the job waits.
both_left() { has "$work/job.err" 'the workers have succeeded; waiting up to .* for process [0-9]+ \(sh\) and [0-9]+ more'; }

for how in plain session quiet; do
    say "what is left running is ended with SIGTERM, and named ($how)"
    begin $how
    join job 30
    expect_code 0
    ends stopped || fail "not both could end in good order: $(cat "$work"/end.*)"
    expect_in "$work/job.err" '^ddprun: process [0-9]+ \(sh\) and [0-9]+ more, which the workers had left running, were ended; --wait-for-helpers=SECONDS waits for such processes$'
    expect_nothing_left

    say "--wait-for-helpers waits for it ($how)"
    begin $how --wait-for-helpers=1000
    wait_until 30 both_left || fail "nothing is said of the wait"
    touch "$work/go"
    join job 30
    expect_code 0
    ends uploaded || fail "not both have finished: $(cat "$work"/end.*)"
    expect_not_in "$work/job.err" 'were ended'
    expect_nothing_left
done

say "the wait ends: SIGTERM, and after --shutdown-timeout SIGKILL"
run 30 --standalone --wait-for-helpers=0.3 --shutdown-timeout=0.3 bash -c \
    'setsid bash -c "trap \"\" TERM; touch $0/deaf; while :; do sleep 332; done" & until [[ -e $0/deaf ]]; do sleep 0.01; done' "$work"
expect_code 0
expect_in "$work/run.err" '^ddprun: process [0-9]+ \(bash\).*, which the workers had left running, were ended, [0-9]+ of them by SIGKILL 0.3 s after SIGTERM \(--wait-for-helpers=0.3 s\)$'
expect_nothing_left

say "a stop ends the wait, and what is left has its time"
begin plain --wait-for-helpers=1000
wait_until 30 both_left || fail "nothing is said of the wait"
kill -TERM "${pid[job]}"
join job 30
expect_code 143
ends stopped || fail "not both could end in good order: $(cat "$work"/end.*)"
expect_nothing_left

say "a job that hangs is not one that waits"
begin plain --wait-for-helpers=1000 --hang-timeout=1 --lease=2
wait_until 30 both_left || fail "nothing is said of the wait"
! wait_until 4 has "$work/job.err" 'no rank has made progress' || fail "it counts as hung"
touch "$work/go"
join job 30
expect_code 0
ends uploaded || fail "not both have finished"

say "by the name torchrun it runs on, outside Slurm"
ddprun=$work/programs/torchrun begin quiet
join job 30
expect_code 0
expect_not_in "$work/job.err" 'left running'
! compgen -G "$work/end.*" || fail "it was ended"
(($(marked | wc -l) >= 2)) || fail "it does not run on"
touch "$work/go"
wait_until 10 ends uploaded || fail "not both have finished"
expect_nothing_left
