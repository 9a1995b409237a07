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

// A task of a step with so many on each node.
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

Result<Plan> plan(std::vector<std::string> words, const Allocation& allocation,
                  const HostFacts& facts = host()) {
    words.insert(words.begin(), "--task-per-worker");
    words.push_back("./train");
    return make_plan(parse_options(words, {}).value(), allocation, facts);
}

// With so many GPUs of the step on the node, of which the task sees these.
Allocation with_gpus(Allocation allocation, int held, const char* visible) {
    allocation.gpus_on_node = held;
    allocation.visible_devices = visible;
    return allocation;
}

TEST(PlanTasks, EachIsANodeWithOneWorker) {
    const auto second = plan({}, task({2, 2}, 3, 1, 1));
    EXPECT_EQ(second->node_name, "n2/1");
    EXPECT_EQ(second->node_rank, 3);
    EXPECT_EQ(second->slots, 1);
    EXPECT_EQ(second->limits.min_nodes, 4);
    EXPECT_EQ(second->limits.max_nodes, 4);
    EXPECT_EQ(second->run_id, "lab.8812.0");
    EXPECT_THAT(second->limits.order, ElementsAre("n1/0", "n1/1", "n2/0", "n2/1"));
}

TEST(PlanTasks, RankOfATaskIsItsOwn) {
    EXPECT_THAT(plan({"--node-rank=1"}, task({2, 2}, 1, 0, 1))->host_warnings, IsEmpty());
    EXPECT_THAT(plan({"--node-rank=0"}, task({2, 2}, 1, 0, 1))->host_warnings,
                ElementsAre(HasSubstr("SLURM_PROCID is 1")));
}

TEST(PlanTasks, OneTaskOnEachNodeIsAsWithoutTheOption) {
    const auto only = plan({}, task({1, 1}, 1, 1, 0), [] {
        HostFacts facts = host();
        facts.gpus.resize(4);
        return facts;
    }());
    EXPECT_EQ(only->node_name, "n2");
    EXPECT_EQ(only->slots, 1);
    EXPECT_FALSE(only->task);
}

// All tasks name the same leader, wherever rank 0 is; those beside it leave it the ports.
TEST(PlanTasks, TheFirstTaskOfTheFirstHostLeads) {
    const auto leader = plan({}, task({1, 2}, 2, 0, 0));
    const auto beside = plan({}, task({2, 2}, 0, 0, 1));
    const auto first = plan({}, task({2, 2}, 2, 1, 0));
    EXPECT_EQ(leader->lead, Lead::yes);
    EXPECT_EQ(beside->lead, Lead::no);
    EXPECT_EQ(first->lead, Lead::no);
    EXPECT_TRUE(beside->task->beside_leader);
    EXPECT_FALSE(first->task->beside_leader);
    EXPECT_EQ(beside->endpoint, first->endpoint);
    EXPECT_EQ(first->endpoint.host, "n1");
    EXPECT_THAT(beside->service_ports, IsEmpty());
    EXPECT_EQ(first->service_ports, first->endpoint.ports);
    EXPECT_THAT(plan({"--ports=7001-7005"}, task({2, 2}, 0, 0, 1))->service_ports,
                ElementsAre(7005, 7004));
}

// On one host nobody else can come.
TEST(PlanTasks, OneHostMeetsOnLoopback) {
    const auto first = plan({}, task({3}, 0, 0, 0)), last = plan({}, task({3}, 2, 0, 2));
    EXPECT_EQ(first->endpoint.host, "127.0.0.1");
    EXPECT_EQ(first->endpoint.ports.size(), 4u);
    EXPECT_EQ(first->lead, Lead::yes);
    EXPECT_EQ(last->lead, Lead::no);
    EXPECT_FALSE(last->standalone);
    EXPECT_EQ(last->limits.max_nodes, 3);
}

// --nnodes counts hosts, as ever.
TEST(PlanTasks, ARangeOfHosts) {
    const auto range = plan({"--nnodes=1:2"}, task({4, 2}, 0, 0, 0));
    EXPECT_EQ(range->limits.min_nodes, 2);
    EXPECT_EQ(range->limits.max_nodes, 6);
    const auto spares = plan({"--nnodes=2"}, task({2, 2, 2}, 0, 0, 0));
    EXPECT_EQ(spares->limits.min_nodes, 4);
    EXPECT_EQ(spares->limits.max_nodes, 4);
    EXPECT_THAT(plan({"--nnodes=3"}, task({2, 2}, 0, 0, 0)).error().sentence(),
                HasSubstr("this step has 2 nodes"));
}

TEST(PlanTasks, ContradictsNprocPerNode) {
    for (const char* word : {"--nproc-per-node=4", "--nproc-per-node=gpu"})
        EXPECT_THAT(plan({word}, task({4, 4}, 0, 0, 0)).error().sentence(),
                    HasSubstr("leave one of them out"));
    EXPECT_TRUE(plan({"--nproc-per-node=1"}, task({4, 4}, 0, 0, 0)));
}

// Four tasks on four GPUs, as each request of srun shows them.
TEST(PlanTasks, TheRightDevice) {
    const Allocation third = task({4, 4}, 2, 0, 2);
    const auto all = plan({}, with_gpus(third, 4, "0,1,2,3"));
    EXPECT_THAT(all->workers.more, IsEmpty()) << "cuda:LOCAL_RANK";
    for (const char* own : {"0", "2"}) {
        const auto alone = plan({}, with_gpus(third, 4, own));
        ASSERT_EQ(alone->workers.more.size(), 1u);
        EXPECT_EQ(alone->workers.more[0].at("LOCAL_RANK"), "0") << "cuda:0";
        EXPECT_FALSE(alone->workers.more[0].contains("CUDA_VISIBLE_DEVICES"));
    }
    const auto dealt = plan({"--virtual-local-rank"}, with_gpus(third, 4, "3,2,1,0"));
    EXPECT_EQ(dealt->workers.more[0].at("CUDA_VISIBLE_DEVICES"), "1");
    EXPECT_EQ(dealt->workers.more[0].at("LOCAL_RANK"), "0");
    EXPECT_THAT(plan({}, with_gpus(task({2}, 1, 0, 1), 4, "2,3"))->workers.more.size(), 1u)
        << "two each";
}

TEST(PlanTasks, RefusesWhereNoDeviceIsTheTasksOwn) {
    const Allocation third = task({4, 4}, 2, 0, 2);
    EXPECT_EQ(plan({}, with_gpus(third, 1, "0")).error().sentence(),
              "4 tasks on n1 for 1 GPU; ask Slurm for --gpus-per-node=4 (for workers that need "
              "none: srun env CUDA_VISIBLE_DEVICES= ddprun …)");
    EXPECT_EQ(
        plan({}, with_gpus(third, 4, "2,3")).error().sentence(),
        "Slurm shows each of the 4 tasks on n1 2 of the step's 4 GPUs, and nothing says which "
        "one is whose; use srun --gpus-per-task=1, or --gpu-bind=none");
    EXPECT_TRUE(plan({}, with_gpus(third, 4, ""))) << "none is to be used";
}

// A task that is bound has its own CPUs; else all tasks share those of the step.
TEST(PlanTasks, CpusAreDividedWhereSlurmHasBoundNone) {
    Allocation third = task({4, 4}, 2, 0, 2);
    third.cpus_on_node = 32;
    EXPECT_EQ(plan({}, third, host(8))->workers.omp_num_threads, 8);
    EXPECT_EQ(plan({}, third, host(32))->workers.omp_num_threads, 8);
    EXPECT_EQ(plan({}, third, host(64))->workers.omp_num_threads, 16);
    third.cpus_per_task = 8;
    EXPECT_EQ(plan({}, third, host(64))->workers.omp_num_threads, 8);
}

TEST(PlanTasks, BindsWithinItsPart) {
    HostFacts facts = host(4);
    for (int i = 0; i < 4; ++i) facts.cpu_list.push_back({i, i / 2, 0, i, i});
    Allocation second = task({2, 2}, 1, 0, 1);
    second.cpus_on_node = 4;
    EXPECT_THAT(plan({"--numa-binding=node"}, second, facts)->workers.cpus,
                ElementsAre(ElementsAre(2, 3)));
    second.cpus_on_node = 8;  // the mask is the task's own
    EXPECT_THAT(plan({"--numa-binding=node"}, second, facts)->workers.cpus,
                ElementsAre(ElementsAre(0, 1)));
}

// --redirects and --local-ranks-filter name tasks of the host.
TEST(PlanTasks, OutputByLocalRank) {
    const auto second = plan({"--redirects=1:3", "--local-ranks-filter=0"}, task({2, 2}, 1, 0, 1));
    ASSERT_EQ(second->workers.output.ranks.size(), 1u);
    EXPECT_EQ(second->workers.output.ranks[0].redirected, 3);
    EXPECT_FALSE(second->workers.output.ranks[0].shown);
    EXPECT_THAT(second->host_warnings, IsEmpty());
}

}  // namespace
}  // namespace ddprun::launcher
