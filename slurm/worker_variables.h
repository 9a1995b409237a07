// What becomes of Slurm's variables in a worker (--slurm-env).
//
// They describe the task that srun started, and that is ddprun: every worker that inherits them
// takes itself for the one task of its node, of as many as there are nodes. Programs that look
// there before they look at RANK then wait for each other for ever. So within a job a worker is
// shown the step as it would be if srun had started the workers as its tasks (`rewrite`):
//
//   SLURM_PROCID, SLURM_LOCALID, SLURM_NODEID            RANK, LOCAL_RANK, GROUP_RANK
//   SLURM_NTASKS, SLURM_NPROCS, SLURM_STEP_NUM_TASKS     WORLD_SIZE
//   SLURM_NNODES, SLURM_STEP_NUM_NODES                   GROUP_WORLD_SIZE
//   SLURM_NTASKS_PER_NODE                                LOCAL_WORLD_SIZE, on equal nodes
//   SLURM_TASKS_PER_NODE, SLURM_STEP_TASKS_PER_NODE      4(x2), on equal nodes
//   SLURM_GTIDS                                          the ranks on this node
//   SLURM_CPUS_PER_TASK                                  its share, where it was set
//   SLURM_STEP_NODELIST                                  kept while it is true
//   SLURM_STEP_ID and all by which a task finds srun, PMI or PMIx       removed
//
// A task with one worker of its own (--task-per-worker) keeps its place as srun told it, as long as
// the world is the whole step. What is not known is not there: a missing variable ends a program
// with its name, a wrong one hangs it. All follow the generation. `drop` removes these and the job's
// id and node list, so that no program believes itself under Slurm; `keep` touches nothing. What
// describes the job or the host (SLURM_JOB_ID, SLURM_JOB_NODELIST, SLURMD_NODENAME,
// SLURM_CPUS_ON_NODE, ...) stays with `rewrite`. The reasons stand in README.md. Pure.
#pragma once

#include <map>
#include <string>

namespace ddprun::slurm {

enum class WorkerVariables { rewrite, keep, drop };

// The place of a worker in its generation, as torchrun's variables say it.
struct WorkerTask {
    int rank = 0;
    int local_rank = 0;
    int world_size = 1;
    int nodes = 1;
    int node_rank = 0;
    int first_rank_here = 0;  // of the workers on this node
    int workers_here = 1;
    bool equal_nodes = true;  // whether all nodes have so many
    // The worker is its ddprun's only one, and that is one of several tasks of its node
    // (--task-per-worker): while the world is the step, all that srun told of its place is true.
    bool of_srun = false;
};

// Nothing is touched outside a job.
void set_worker_variables(std::map<std::string, std::string>& environment, WorkerVariables mode,
                          const WorkerTask& task);

}  // namespace ddprun::slurm
