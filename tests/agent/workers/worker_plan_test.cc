// The place of a worker in a generation, and torchrun's names for log folders. Pure.
#include "agent/workers/worker_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/output/attempt_names.h"
#include "tests/support/builders.h"

using namespace ddprun;
using namespace ddprun::agent;
using namespace ddprun::test;

// A world of 2 + 3 + 2 workers, whose middle node has a role of its own. Every number differs from
// the others where it can, so a mix-up of two fields shows. The worker is the last one of the last
// node.
TEST(WorkerPlan, PlaceInAGeneration) {
    rendezvous::Assignment generation = assignment(4, {node("a"), node("b"), node("c")}, 2);
    generation.members[1].offer.slots = 3, generation.members[1].offer.role = "reader";
    generation.members[2].rank_offset = 5;
    generation.world_size = 7, generation.max_restarts = 2;
    generation.members[0].offer.address = "10.0.0.1";
    generation.members[0].offer.store_port = 4711;
    WorkerPlan plan;
    plan.run_id = "job";
    plan.omp_num_threads = 3;
    plan.signal_names = "SIGTERM";
    plan.more = {{{"A", "0"}}, {{"A", "1"}}};
    const WorkerPlace place = place_of(plan, rendezvous::places_of(generation).at(node("c")), 1);
    EXPECT_EQ(place.rank, 6);
    EXPECT_EQ(place.local_rank, 1);
    EXPECT_EQ(place.world_size, 7);
    EXPECT_EQ(place.local_world_size, 2);
    EXPECT_EQ(place.group_rank, 2);
    EXPECT_EQ(place.group_world_size, 3);
    EXPECT_EQ(place.role_rank, 3) << "two of node a have the role";
    EXPECT_EQ(place.role_world_size, 4);
    EXPECT_FALSE(place.equal_nodes);
    EXPECT_EQ(place.master_addr, "10.0.0.1");
    EXPECT_EQ(place.master_port, 4711);
    EXPECT_EQ(place.generation, 4);
    EXPECT_EQ(place.max_restarts, 2);
    EXPECT_EQ(place.run_id, "job");
    EXPECT_EQ(place.omp_num_threads, 3);
    EXPECT_EQ(place.progress_fd, kProgressFd);
    EXPECT_EQ(place.signal_names, "SIGTERM");
    EXPECT_EQ(place.more, (Environment{{"A", "1"}}));
}

// A node that has no place yet knows what will not change when it gets one.
TEST(WorkerPlan, EnvironmentBeforeThereIsAPlace) {
    WorkerPlan plan;
    plan.environment = {
        {"HOME", "/home/me"}, {"SLURM_JOB_ID", "7"}, {"SLURM_NODEID", "3"}, {"SLURM_NNODES", "4"}};
    plan.run_id = "job";
    plan.more = {{{"CUDA_VISIBLE_DEVICES", "0"}}};
    const EnvironmentToCome to_come = environment_to_come(plan);
    for (const char* name :
         {"RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT",
          "TORCHELASTIC_RESTART_COUNT", "SLURM_NODEID", "SLURM_NNODES", "TORCHELASTIC_ERROR_FILE",
          "DDPRUN_STOP_FILE", "DDPRUN_SNAPSHOT_FILE"})
        EXPECT_TRUE(to_come.placed.contains(name)) << name;
    for (const char* name : {"HOME", "TORCHELASTIC_RUN_ID", "CUDA_VISIBLE_DEVICES"})
        EXPECT_FALSE(to_come.placed.contains(name)) << name;
    EXPECT_THAT(to_come.example, testing::IsSupersetOf({"HOME=/home/me", "TORCHELASTIC_RUN_ID=job",
                                                        "CUDA_VISIBLE_DEVICES=0"}));
}

// --task-per-worker: srun starts two tasks on each of two hosts and deals them out in turn (a, b,
// a, b). Programs expect local ranks and group ranks to count hosts, not tasks.
TEST(WorkerPlan, PlaceOfATask) {
    const auto generation = assignment(0, {node("a/0"), node("b/0"), node("a/1"), node("b/1")}, 1);
    const WorkerPlace place =
        place_of(WorkerPlan{}, rendezvous::places_of(generation).at(node("b/1")), 0);
    EXPECT_EQ(place.rank, 3);
    EXPECT_EQ(place.local_rank, 1);
    EXPECT_EQ(place.world_size, 4);
    EXPECT_EQ(place.local_world_size, 2);
    EXPECT_EQ(place.group_rank, 1);
    EXPECT_EQ(place.group_world_size, 2);
    EXPECT_TRUE(place.equal_nodes);
    EXPECT_TRUE(place.task_of_host);
}

// Tools look for logs under these names. A slash in the run id must never lead out of the log
// folder.
TEST(AttemptNames, AreTorchruns) {
    const std::string run = run_folder("../a", "x1y2z3ab");
    EXPECT_EQ(run, ".._a_x1y2z3ab");
    const std::string attempt = attempt_folder(run, Generation{3});
    EXPECT_EQ(worker_folder(attempt, 1), ".._a_x1y2z3ab/attempt_3/1");
    EXPECT_EQ(filtered_file(attempt, 1), ".._a_x1y2z3ab/attempt_3/filtered_stderr.log");
}
