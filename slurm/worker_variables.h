// Changes Slurm's variables in the environment of a worker (--slurm-env). Pure.
//
// Slurm's variables describe the task that srun started, and that task is ddprun. A worker that
// inherits them unchanged believes that it is the only task on its node. Programs that read these
// variables before RANK then wait for each other forever. So within a job a worker sees the step as
// if srun had started the workers as its tasks (`rewrite`):
//
//   SLURM_PROCID, SLURM_LOCALID, SLURM_NODEID            RANK, LOCAL_RANK, GROUP_RANK
//   SLURM_NTASKS, SLURM_NPROCS, SLURM_STEP_NUM_TASKS     WORLD_SIZE
//   SLURM_NNODES, SLURM_STEP_NUM_NODES                   GROUP_WORLD_SIZE
//   SLURM_NTASKS_PER_NODE                                LOCAL_WORLD_SIZE, if nodes are equal
//   SLURM_TASKS_PER_NODE, SLURM_STEP_TASKS_PER_NODE      4(x2), if nodes are equal
//   SLURM_GTIDS                                          the ranks on this node
//   SLURM_CPUS_PER_TASK                                  the worker's share, if it was set
//   SLURM_STEP_NODELIST                                  unchanged while it is true, else removed
//   SLURM_STEP_ID, and all by which a task finds srun, PMI or PMIx      removed
//
// Rules:
// - The values follow the generation: with fewer nodes there are fewer tasks.
// - A value that is not known is removed. A missing variable ends a program with a clear message; a
//   wrong one makes it hang.
// - With --task-per-worker a worker keeps its place as srun told it, as long as the world is the
//   whole step.
// - Variables of the job or the host (SLURM_JOB_ID, SLURM_JOB_NODELIST, SLURMD_NODENAME,
//   SLURM_CPUS_ON_NODE, ...) stay as they are.
//
// `drop` removes the variables above, and also the job's id and node list, so that no program
// believes that it runs under Slurm. `keep` changes nothing. slurm/README.md has the reasons.
#pragma once

#include <map>
#include <string>

namespace ddprun::slurm {

enum class WorkerVariables { rewrite, keep, drop };

// The place of a worker in its generation, with torchrun's numbers.
struct WorkerTask {
    int rank = 0;
    int local_rank = 0;
    int world_size = 1;
    int nodes = 1;
    int node_rank = 0;
    int first_rank_here = 0;  // the lowest rank on this node
    int workers_here = 1;
    bool equal_nodes = true;  // whether all nodes have workers_here workers
    // The worker is the only one of its ddprun, which is one of several tasks on its node
    // (--task-per-worker). While the world is the step, srun's variables are true for it.
    bool of_srun = false;
};

// Changes `environment` in place. Outside a job it changes nothing.
void set_worker_variables(std::map<std::string, std::string>& environment, WorkerVariables mode,
                          const WorkerTask& task);

}  // namespace ddprun::slurm
