// The environment of a worker, built from ddprun's own and the worker's place. Pure: maps in, lines
// out.
#include "agent/workers/worker_env.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace ddprun::agent;
using testing::Contains;
using testing::ElementsAre;
using testing::Not;

// Worker 1 of 4 on the second of two nodes, with nothing else in the environment. The list is
// exact: programs written for torchrun find all they read, and nothing that they do not expect.
TEST(WorkerEnv, SetsTorchrunsVariables) {
    WorkerPlace place;
    place.rank = 5, place.local_rank = 1, place.world_size = 8, place.local_world_size = 4;
    place.group_rank = 1, place.group_world_size = 2, place.role_rank = 5,
    place.role_world_size = 8;
    place.master_addr = "10.0.0.1", place.master_port = 29400, place.generation = 3,
    place.max_restarts = 4;
    place.run_id = "job-8812", place.error_file = "/l/error.json", place.stop_file = "/l/stop.json";
    place.snapshot_file = "/l/snapshot.json";
    EXPECT_THAT(
        worker_environment({}, place),
        ElementsAre("DDPRUN_SNAPSHOT_FILE=/l/snapshot.json", "DDPRUN_STOP_FILE=/l/stop.json",
                    "GROUP_RANK=1", "GROUP_WORLD_SIZE=2", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=4",
                    "MASTER_ADDR=10.0.0.1", "MASTER_PORT=29400", "RANK=5", "ROLE_NAME=default",
                    "ROLE_RANK=5", "ROLE_WORLD_SIZE=8", "TORCHELASTIC_ERROR_FILE=/l/error.json",
                    "TORCHELASTIC_MAX_RESTARTS=4", "TORCHELASTIC_RESTART_COUNT=3",
                    "TORCHELASTIC_RUN_ID=job-8812",
                    "TORCHELASTIC_SIGNALS_TO_HANDLE=SIGTERM,SIGINT,SIGHUP,SIGQUIT",
                    "TORCHELASTIC_USE_AGENT_STORE=True", "TORCH_NCCL_ASYNC_ERROR_HANDLING=1",
                    "WORLD_SIZE=8"));
}

// A rank of MPI: what MPICH reads, and nothing of an outer launcher's PMI.
TEST(WorkerEnv, SetsPmisVariables) {
    WorkerPlace place;
    place.rank = 5, place.local_rank = 1, place.world_size = 8, place.local_world_size = 4;
    EXPECT_THAT(worker_environment({{"PMI_PORT", "n1:4001"}}, place), Contains("PMI_PORT=n1:4001"));
    place.pmi_fd = 4;
    const std::vector<std::string> lines =
        worker_environment({{"PMI_PORT", "n1:4001"}, {"PMI_RANK", "0"}}, place);
    for (const char* line :
         {"PMI_FD=4", "PMI_RANK=5", "PMI_SIZE=8", "MPI_LOCALRANKID=1", "MPI_LOCALNRANKS=4"})
        EXPECT_THAT(lines, Contains(line));
    EXPECT_THAT(lines, Not(Contains("PMI_PORT=n1:4001")));
}

// A batch script may export RANK or MASTER_PORT from its torchrun days. All workers would then have
// the same rank, and hang. A progress pipe of an outer ddprun is not ours either.
TEST(WorkerEnv, OverwritesWhatAnOuterScriptExported) {
    const Environment base{{"RANK", "77"},
                           {"MASTER_PORT", "1"},
                           {"HOME", "/h"},
                           {"DDPRUN_PROGRESS_FD", "9"},
                           {"DDPRUN_EVENTS_FD", "9"},
                           {"DDPRUN_RUN_KEY", "outer"},
                           {"DDPRUN_SNAPSHOT_FILE", "/outer/snapshot.json"}};
    const auto env = worker_environment(base, {});
    EXPECT_THAT(env, Contains("RANK=0"));
    EXPECT_THAT(env, Contains("HOME=/h"));
    EXPECT_THAT(env, Not(Contains("RANK=77")));
    EXPECT_THAT(env, Not(Contains("DDPRUN_PROGRESS_FD=9")));
    EXPECT_THAT(env, Not(Contains("DDPRUN_EVENTS_FD=9")));
    EXPECT_THAT(env, Not(Contains("DDPRUN_SNAPSHOT_FILE=/outer/snapshot.json")))
        << "its workers would take the outer one's request for theirs";
}

// For these two variables ddprun has only a default. The user's value wins.
TEST(WorkerEnv, KeepsWhatIsTheUsersToSay) {
    WorkerPlace place;
    place.omp_num_threads = 4;
    EXPECT_THAT(worker_environment({}, place), Contains("OMP_NUM_THREADS=4"));
    const Environment base{{"OMP_NUM_THREADS", "2"}, {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "3"}};
    EXPECT_THAT(worker_environment(base, place), Contains("OMP_NUM_THREADS=2"));
    EXPECT_THAT(worker_environment(base, place), Contains("TORCH_NCCL_ASYNC_ERROR_HANDLING=3"));
}

// Python writes its functions when it gets a fatal signal, unless the user has said something else:
// an empty value turns it off.
TEST(WorkerEnv, TurnsOnTheFaultHandlerOfPython) {
    WorkerPlace place;
    EXPECT_THAT(worker_environment({}, place), Not(Contains(testing::HasSubstr("PYTHONFAULT"))));
    place.fault_handler = true;
    EXPECT_THAT(worker_environment({}, place), Contains("PYTHONFAULTHANDLER=1"));
    EXPECT_THAT(worker_environment({{"PYTHONFAULTHANDLER", ""}}, place),
                Contains("PYTHONFAULTHANDLER="));
}

// The variables of the worker's own device (`more`) win over what ddprun inherited. Otherwise all
// workers would see all GPUs and use the first one.
TEST(WorkerEnv, NamesTheProgressPipeAndTheDevice) {
    WorkerPlace place;
    place.progress_fd = 3, place.events_fd = 5,
    place.more = {{"X", "y"}, {"CUDA_VISIBLE_DEVICES", "2"}};
    const auto env = worker_environment({{"CUDA_VISIBLE_DEVICES", "0,1,2"}}, place);
    EXPECT_THAT(env, Contains("DDPRUN_PROGRESS_FD=3"));
    EXPECT_THAT(env, Contains("DDPRUN_EVENTS_FD=5"));
    EXPECT_THAT(env, Contains("CUDA_VISIBLE_DEVICES=2"));
    EXPECT_THAT(env, Contains("X=y"));
}

// Slurm's variables describe ddprun, which is one task on each node. A program that reads
// SLURM_PROCID before RANK would believe that it is alone, so they must agree with torchrun's
// variables.
TEST(WorkerEnv, SlurmSaysTheSameOfAWorker) {
    WorkerPlace place;
    place.rank = 5, place.local_rank = 1, place.world_size = 8, place.local_world_size = 4;
    place.group_rank = 1, place.group_world_size = 2, place.equal_nodes = true;
    const Environment base{{"SLURM_JOB_ID", "1"}, {"SLURM_PROCID", "1"}, {"SLURM_STEP_ID", "0"}};
    auto env = worker_environment(base, place);
    for (const char* line : {"SLURM_PROCID=5", "SLURM_LOCALID=1", "SLURM_NODEID=1",
                             "SLURM_NTASKS=8", "SLURM_TASKS_PER_NODE=4(x2)", "SLURM_GTIDS=4,5,6,7"})
        EXPECT_THAT(env, Contains(line));
    // With the id of the step, a program would try to reach srun as one of its tasks.
    EXPECT_THAT(env, Not(Contains("SLURM_STEP_ID=0")));

    // If other nodes have other numbers of workers, the true value is not known. None at all ends a
    // program with a clear message; a wrong one makes it hang.
    place.equal_nodes = false;
    EXPECT_THAT(worker_environment(base, place), Not(Contains("SLURM_TASKS_PER_NODE=4(x2)")));

    // --virtual-local-rank: each worker sees one device and believes that it is the only one here.
    // The ranks on the node do not change by that.
    place.more = {{"LOCAL_RANK", "0"}};
    env = worker_environment(base, place);
    EXPECT_THAT(env, Contains("SLURM_LOCALID=0"));
    EXPECT_THAT(env, Contains("SLURM_GTIDS=4,5,6,7"));

    // --slurm-env=keep: the user wants srun's variables as they are.
    place.slurm_env = ddprun::slurm::WorkerVariables::keep;
    EXPECT_THAT(worker_environment(base, place), Contains("SLURM_PROCID=1"));
}
