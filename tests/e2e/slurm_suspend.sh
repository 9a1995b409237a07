#!/usr/bin/env bash
# scontrol suspend for longer than the lease, on a real Slurm cluster: Slurm stops all processes of the job and then
# continues them, one node after the other. The deadline has passed, so the workers are killed. But no node is lost: the
# log calls it a suspension, no node is blamed, no restart is used up, and the next generation begins at once, with all
# nodes.
source "$(dirname "${BASH_SOURCE[0]}")/slurm_common.sh"
need_built ddprun ddpctl
need_program python3
start_lab 3
cd "$work" # the ledger's folder is made in the working directory

cat >worker.py <<'PYTHON'
import os, time
open(f"run.{os.environ['TORCHELASTIC_RESTART_COUNT']}.{os.environ['RANK']}", "w").close()
for step in range(1000000):
    os.write(int(os.environ["DDPRUN_PROGRESS_FD"]), b"step=%d\n" % step)
    time.sleep(0.05)
PYTHON
# With a lease of 2 s the deadline passes while Slurm has stopped ddprun (SIGTSTP), and its keeper not yet (SIGSTOP).
lease=2
cat >job.sbatch <<S
#!/bin/bash
srun --no-kill $ddprun --nnodes=2:3 --nproc-per-node=1 --lease=$lease --max-restarts=1 --no-python python3 worker.py
echo "code \$?"
S
state() { login scontrol show job -o "$job" | sed -n 's/.*JobState=\([A-Z]*\).*/\1/p'; }
is() { [[ $(state) == "$1" ]]; }
all_run() { [[ $(find . -name "run.$1.*" | wc -l) == 3 ]]; }
status() { login "$bin/ddpctl" status >ctl.out 2>&1 || true; }

job=$(login sbatch --parsable --no-kill -N3 --ntasks-per-node=1 --time=30 -o "$work/job.out" job.sbatch)
wait_until 40 all_run 0 || fail "the job does not run: $(cat job.out)"
for round in 1 2; do
    say "suspended for more than $lease s, round $round"
    login scontrol suspend "$job"
    wait_until 20 is SUSPENDED || fail "the job is $(state)"
    status
    expect_in ctl.out 'the job is suspended: Slurm has stopped its processes'
    login scontrol resume "$job"
    resumed=$EPOCHREALTIME
    wait_until 20 all_run "$round" || fail "it does not go on: $(cat job.out)"
    python3 - "$resumed" "$round" <<'PYTHON'
import glob, os, sys
began = max(os.stat(name).st_mtime for name in glob.glob(f"run.{sys.argv[2]}.*")) - float(sys.argv[1])
print("  from the resume to the last worker of the next generation: %.1f s" % began)
PYTHON
    [[ $(grep -c 'the job was suspended: all 3 nodes stood still for ' job.out) == "$round" ]] ||
        fail "not called a suspension: $(cat job.out)"
    status
    expect_in ctl.out 'restarts    0 of 1 used'
    expect_in ctl.out 'last end    the job was suspended: all 3 nodes stood still for '
done
expect_in job.out 'this node stood still for .*; killing its workers'
expect_not_in job.out 'has confirmed nothing|is lost|caused the end of|Killed'
login scancel "$job"
wait_until 30 none_queued || fail "the job does not end"
expect_in job.out 'restarts by cause: 2 suspensions'
expect_in job.out ' lost, .* in being suspended$'
expect_nothing_left 20
