#!/usr/bin/env bash
# The job of a recorded release, as a step of one node of Slurm. Arguments: ddprun, and how often Slurm has requeued the
# job. Its ledger is ledger/ of the working directory. Its words never change: a ledger knows them.
set -euo pipefail
ddprun=$1
export SLURM_RESTART_COUNT=$2 SLURM_JOB_ID=88 SLURM_STEP_ID=0 SLURM_CLUSTER_NAME=lab SLURM_NODEID=0
export SLURM_STEP_NODELIST=127.0.0.1 SLURM_STEP_NUM_NODES=1 SLURM_STEP_TASKS_PER_NODE=1
exec "$ddprun" --ports=29577-29577 --lease=2 --nproc-per-node=2 --max-restarts=3 --ledger="directory:$PWD/ledger" \
    ./worker ./linear 3 snapshots
