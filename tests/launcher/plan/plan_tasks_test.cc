// --task-per-worker: srun starts one ddprun for each worker, and each is a node of the rendezvous.
// Pure. Each task plans for itself, so the plans of all tasks must agree.
#include "launcher/plan/plan_tasks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/plan/make_plan.h"

namespace ddprun::launcher {
namespace {

using slurm::Allocation;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// One task of a step: how many tasks each node has, and which one this is.
Allocation task(std::vector<int> tasks, int proc_id, int node, int local_id) {
    Allocation a;
    a.cluster = "lab", a.job_id = "8812", a.step_id = "0", a.distribution = "block";
    for (std::size_t i = 1; i <= tasks.size(); ++i) a.nodes.push_back("n" + std::to_string(i));
    a.tasks_per_node = std::move(tasks);
    a.proc_id = proc_id, a.node_id = node, a.local_id = local_id;
    a.node_name = a.nodes[static_cast<std::size_t>(node)];
    return a;
}

HostFacts host(int cpus = 8) {
    HostFacts host;
    host.hostname = "me";
    host.cpus = cpus;
    host.working_directory = "/home/user";
    host.random_id = "random";
    return host;
}

Result<Plan> plan_of_tasks(std::vector<std::string> words, const Allocation& allocation,
                           const HostFacts& facts = host()) {
    words.insert(words.begin(), "--task-per-worker");
    words.push_back("./train");
    return make_plan(parse_options(words, {}).value(), allocation, facts);
}

// The step has `held` GPUs on this node. The task sees those that CUDA_VISIBLE_DEVICES lists.
Allocation with_gpus(Allocation allocation, int held, const char* visible) {
    allocation.gpus_on_node = held;
    allocation.visible_devices = visible;
    return allocation;
}

// The task is named after its host and its place there. Its rank is Slurm's.
TEST(PlanTasks, EachIsANodeWithOneWorker) {
    const auto second = plan_of_tasks({}, task({2, 2}, 3, 1, 1));
    EXPECT_EQ(second->node_name, "n2/1");
    EXPECT_EQ(second->node_rank, 3);
    EXPECT_EQ(second->slots, 1);
    EXPECT_EQ(second->limits.min_nodes, 4);
    EXPECT_EQ(second->limits.max_nodes, 4);
    EXPECT_EQ(second->run_id, "lab.8812.0");
    EXPECT_THAT(second->limits.order, ElementsAre("n1/0", "n1/1", "n2/0", "n2/1"));
}

// $SLURM_PROCID is right here, where it is wrong without the option.
TEST(PlanTasks, RankOfATaskIsItsOwn) {
    EXPECT_THAT(plan_of_tasks({"--node-rank=1"}, task({2, 2}, 1, 0, 1))->host_warnings, IsEmpty());
    EXPECT_THAT(plan_of_tasks({"--node-rank=0"}, task({2, 2}, 1, 0, 1))->host_warnings,
                ElementsAre(HasSubstr("SLURM_PROCID is 1")));
}

// No task shares its host, so nothing differs from one ddprun a node.
TEST(PlanTasks, OneTaskOnEachNodeIsAsWithoutTheOption) {
    const auto only = plan_of_tasks({}, task({1, 1}, 1, 1, 0), [] {
        HostFacts facts = host();
        facts.gpus.resize(4);
        return facts;
    }());
    EXPECT_EQ(only->node_name, "n2");
    EXPECT_EQ(only->slots, 1);
    EXPECT_FALSE(only->task);
}

// Rank 0 may be on any host (srun --distribution). All tasks know the first host of the step, so
// its first task leads. The tasks beside it must leave a port free for it.
TEST(PlanTasks, TheFirstTaskOfTheFirstHostLeads) {
    const auto leader = plan_of_tasks({}, task({1, 2}, 2, 0, 0));
    const auto beside = plan_of_tasks({}, task({2, 2}, 0, 0, 1));
    const auto first = plan_of_tasks({}, task({2, 2}, 2, 1, 0));
    EXPECT_EQ(leader->lead, Lead::yes);
    EXPECT_EQ(beside->lead, Lead::no);
    EXPECT_EQ(first->lead, Lead::no);
    EXPECT_TRUE(beside->task->beside_leader);
    EXPECT_FALSE(first->task->beside_leader);
    EXPECT_EQ(beside->endpoint, first->endpoint);
    EXPECT_EQ(first->endpoint.host, "n1");
    EXPECT_THAT(beside->service_ports, IsEmpty());
    EXPECT_EQ(first->service_ports, first->endpoint.ports);
    // Ports that are open in a firewall are few: the others take at most half, from the far end.
    EXPECT_THAT(plan_of_tasks({"--ports=7001-7005"}, task({2, 2}, 0, 0, 1))->service_ports,
                ElementsAre(7005, 7004));
}

// All tasks are on one host, so the meeting needs no network.
TEST(PlanTasks, OneHostMeetsOnLoopback) {
    const auto first = plan_of_tasks({}, task({3}, 0, 0, 0)),
               last = plan_of_tasks({}, task({3}, 2, 0, 2));
    EXPECT_EQ(first->endpoint.host, "127.0.0.1");
    EXPECT_EQ(first->endpoint.ports.size(), 4u);
    EXPECT_EQ(first->lead, Lead::yes);
    EXPECT_EQ(last->lead, Lead::no);
    EXPECT_FALSE(last->standalone);
    EXPECT_EQ(last->limits.max_nodes, 3);
}

// --nnodes counts hosts also with this option. Of two hosts with 4 and 2 tasks the smaller one
// gives the minimum: 2 tasks, at most 6.
TEST(PlanTasks, ARangeOfHosts) {
    const auto range = plan_of_tasks({"--nnodes=1:2"}, task({4, 2}, 0, 0, 0));
    EXPECT_EQ(range->limits.min_nodes, 2);
    EXPECT_EQ(range->limits.max_nodes, 6);
    const auto spares = plan_of_tasks({"--nnodes=2"}, task({2, 2, 2}, 0, 0, 0));
    EXPECT_EQ(spares->limits.min_nodes, 4);
    EXPECT_EQ(spares->limits.max_nodes, 4);
    EXPECT_THAT(plan_of_tasks({"--nnodes=3"}, task({2, 2}, 0, 0, 0)).error().sentence(),
                HasSubstr("this step has 2 nodes"));
}

// A task has one worker. A count of 1 says the same and is accepted.
TEST(PlanTasks, ContradictsNprocPerNode) {
    for (const char* word : {"--nproc-per-node=4", "--nproc-per-node=gpu"})
        EXPECT_THAT(plan_of_tasks({word}, task({4, 4}, 0, 0, 0)).error().sentence(),
                    HasSubstr("leave one of them out"));
    EXPECT_TRUE(plan_of_tasks({"--nproc-per-node=1"}, task({4, 4}, 0, 0, 0)));
}

// Four tasks on four GPUs, in each way that srun can show them. A program takes cuda:LOCAL_RANK, so
// LOCAL_RANK must be right for what the task sees.
TEST(PlanTasks, TheRightDevice) {
    const Allocation third = task({4, 4}, 2, 0, 2);
    const auto all = plan_of_tasks({}, with_gpus(third, 4, "0,1,2,3"));
    EXPECT_THAT(all->workers.more, IsEmpty()) << "cuda:LOCAL_RANK";
    // Slurm has bound the task to one GPU: it is device 0, whatever its number is.
    for (const char* own : {"0", "2"}) {
        const auto alone = plan_of_tasks({}, with_gpus(third, 4, own));
        ASSERT_EQ(alone->workers.more.size(), 1u);
        EXPECT_EQ(alone->workers.more[0].at("LOCAL_RANK"), "0") << "cuda:0";
        EXPECT_FALSE(alone->workers.more[0].contains("CUDA_VISIBLE_DEVICES"));
    }
    const auto dealt = plan_of_tasks({"--virtual-local-rank"}, with_gpus(third, 4, "3,2,1,0"));
    EXPECT_EQ(dealt->workers.more[0].at("CUDA_VISIBLE_DEVICES"), "1");
    EXPECT_EQ(dealt->workers.more[0].at("LOCAL_RANK"), "0");
    EXPECT_THAT(plan_of_tasks({}, with_gpus(task({2}, 1, 0, 1), 4, "2,3"))->workers.more.size(), 1u)
        << "two each";
}

// Two ranks of NCCL cannot share a GPU. And where each task sees two of four GPUs, nothing says
// which are its own. The sentence names the option of srun to change.
TEST(PlanTasks, RefusesWhereNoDeviceIsTheTasksOwn) {
    const Allocation third = task({4, 4}, 2, 0, 2);
    EXPECT_EQ(plan_of_tasks({}, with_gpus(third, 1, "0")).error().sentence(),
              "4 tasks on n1 for 1 GPU; ask Slurm for --gpus-per-node=4 (if workers need no GPU: "
              "srun env CUDA_VISIBLE_DEVICES= ddprun …)");
    EXPECT_EQ(plan_of_tasks({}, with_gpus(third, 4, "2,3")).error().sentence(),
              "each of the 4 tasks on n1 sees 2 of the step's 4 GPUs, so nothing says which GPU "
              "belongs to which task; use srun --gpus-per-task=1, or --gpu-bind=none");
    // An empty list: the user hides all GPUs on purpose.
    EXPECT_TRUE(plan_of_tasks({}, with_gpus(third, 4, ""))) << "none is to be used";
}

// host(8) is a task whose mask Slurm has set: it keeps its CPUs. A mask with all CPUs of the step
// is shared by all four tasks.
TEST(PlanTasks, CpusAreDividedWhereSlurmHasBoundNone) {
    Allocation third = task({4, 4}, 2, 0, 2);
    third.cpus_on_node = 32;
    EXPECT_EQ(plan_of_tasks({}, third, host(8))->workers.omp_num_threads, 8);
    EXPECT_EQ(plan_of_tasks({}, third, host(32))->workers.omp_num_threads, 8);
    EXPECT_EQ(plan_of_tasks({}, third, host(64))->workers.omp_num_threads, 16);
    third.cpus_per_task = 8;
    EXPECT_EQ(plan_of_tasks({}, third, host(64))->workers.omp_num_threads, 8);
}

// Four CPUs on two NUMA nodes. The mask is shared, so the second task gets the second half.
TEST(PlanTasks, BindsWithinItsPart) {
    HostFacts facts = host(4);
    for (int i = 0; i < 4; ++i) facts.cpu_list.push_back({i, i / 2, 0, i, i});
    Allocation second = task({2, 2}, 1, 0, 1);
    second.cpus_on_node = 4;
    EXPECT_THAT(plan_of_tasks({"--numa-binding=node"}, second, facts)->workers.cpus,
                ElementsAre(ElementsAre(2, 3)));
    second.cpus_on_node = 8;  // more than the mask has: the mask is the task's own
    EXPECT_THAT(plan_of_tasks({"--numa-binding=node"}, second, facts)->workers.cpus,
                ElementsAre(ElementsAre(0, 1)));
}

// --redirects and --local-ranks-filter count the tasks of the host, as they count workers
// otherwise.
TEST(PlanTasks, OutputByLocalRank) {
    const auto second =
        plan_of_tasks({"--redirects=1:3", "--local-ranks-filter=0"}, task({2, 2}, 1, 0, 1));
    ASSERT_EQ(second->workers.output.ranks.size(), 1u);
    EXPECT_EQ(second->workers.output.ranks[0].redirected, 3);
    EXPECT_FALSE(second->workers.output.ranks[0].shown);
    EXPECT_THAT(second->host_warnings, IsEmpty());
}

}  // namespace
}  // namespace ddprun::launcher
