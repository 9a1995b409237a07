#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/plan/make_plan.h"

#include "launcher/plan/plan_meeting.h"

namespace ddprun::launcher {
namespace {

using slurm::Allocation;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Allocation step(int nodes, int node_id) {
    Allocation a;
    a.cluster = "lab", a.job_id = "8812", a.step_id = "0";
    for (int i = 1; i <= nodes; ++i) a.nodes.push_back("n" + std::to_string(i));
    a.job_nodes = a.nodes;
    a.job_nodes.push_back("other");
    a.node_id = node_id;
    a.node_name = a.nodes[static_cast<std::size_t>(node_id)];
    return a;
}

Result<Plan> plan(const std::vector<std::string>& options, std::optional<Allocation> allocation) {
    auto words = options;
    words.push_back("./train");
    HostFacts host;
    host.hostname = "me";
    host.working_directory = "/home/user";
    host.random_id = "random";
    return make_plan(parse_options(words, {}).value(), allocation, host);
}

// Without an option the step says all: id, nodes, order, place, and its first node leads.
TEST(PlanMeeting, AStepNeedsNoOption) {
    auto first = plan({}, step(4, 0)), last = plan({}, step(4, 3));
    EXPECT_EQ(first->run_id, "lab.8812.0");
    EXPECT_EQ(last->node_name, "n4");
    EXPECT_EQ(last->node_rank, 3);
    EXPECT_EQ(last->limits.min_nodes, 4);
    EXPECT_EQ(last->limits.max_nodes, 4);
    EXPECT_EQ(last->limits.order.size(), 4u);
    EXPECT_EQ(first->endpoint, last->endpoint);
    EXPECT_EQ(first->endpoint.host, "n1");
    EXPECT_EQ(first->lead, Lead::yes);
    EXPECT_EQ(last->lead, Lead::no);
    EXPECT_FALSE(last->standalone);
    EXPECT_TRUE(plan({}, step(1, 0))->standalone);
}

// On each node another address, of the same network.
TEST(PlanMeeting, AddressOfAnInterface) {
    HostFacts host;
    host.interfaces = {{"lo", "127.0.0.1"},    {"eth0", "10.0.0.7"},  {"ib0", "fe80::1"},
                       {"ib0", "fd00::7"},     {"ib1", "fe80::2"},    {"hsn0", "fd00::8"},
                       {"hsn0", "10.249.0.7"}, {"hsn0", "10.249.1.7"}};
    const auto with = [&](std::vector<std::string> words, int nodes = 4) {
        words.push_back("./train");
        return make_plan(parse_options(words, {}).value(), step(nodes, 0), host);
    };
    EXPECT_EQ(with({"--interface=eth0"})->local_addr, "10.0.0.7");
    EXPECT_EQ(with({"--interface=hsn0"})->local_addr, "10.249.0.7");
    EXPECT_EQ(with({"--interface=ib0"})->local_addr, "fd00::7");
    EXPECT_EQ(with({})->local_addr, std::nullopt);
    for (const char* none : {"--interface=ib1", "--interface=ib7"})
        EXPECT_EQ(with({none}).error().sentence(),
                  std::string(none) + ": n1 has no address on it; it has some on lo, eth0, ib0" +
                      (none == std::string("--interface=ib7") ? ", ib1" : "") + ", hsn0");
    EXPECT_THAT(with({"--interface=lo"}).error().sentence(), HasSubstr("own loopback address"));
    EXPECT_TRUE(with({"--interface=lo"}, 1));
    EXPECT_THAT(with({"--interface=eth0", "--local-addr=10.0.0.7"}).error().sentence(),
                HasSubstr("leave one of them out"));
}

// Four ports, apart for neighbouring jobs and steps, below those that Linux gives out.
TEST(PlanMeeting, PortsOfAStep) {
    Allocation a = step(2, 0), b = a;
    b.step_id = "1";
    auto ports = derived_ports(a);
    EXPECT_EQ(ports.size(), 4u);
    for (int port : ports) {
        EXPECT_GE(port, 20000);
        EXPECT_LT(port, 30000);
        EXPECT_THAT(derived_ports(b), testing::Not(testing::Contains(port)));
    }
    a.reserved_ports = {20001, 20002};
    EXPECT_THAT(plan({}, a)->endpoint.ports, ElementsAre(20001, 20002));
    EXPECT_THAT(plan({"--ports=7010-7012"}, a)->endpoint.ports, ElementsAre(7010, 7011, 7012));
    EXPECT_THAT(plan({"--rdzv-endpoint=n1:6000"}, a)->endpoint.ports,
                ElementsAre(6000, 20001, 20002));
}

// An endpoint of the script is believed where it can be right, and its node leads.
TEST(PlanMeeting, EndpointsInAStep) {
    struct Row {
        const char* endpoint;
        const char* host;
        Lead of_first, of_second;
        int warnings;
    };
    for (const Row& row : {
             Row{"n1:29500", "n1", Lead::yes, Lead::no, 0},
             Row{"n2.cluster.local:29500", "n2.cluster.local", Lead::no, Lead::yes, 0},
             Row{"n1i:29500", "n1i", Lead::if_address_matches, Lead::if_address_matches, 0},
             Row{"10.0.0.1", "10.0.0.1", Lead::if_address_matches, Lead::if_address_matches, 0},
             Row{"other:29500", "n1", Lead::yes, Lead::no, 1},
         }) {
        auto first = plan({"--rdzv-endpoint", row.endpoint}, step(2, 0));
        auto second = plan({"--rdzv-endpoint", row.endpoint}, step(2, 1));
        ASSERT_TRUE(first && second) << row.endpoint;
        EXPECT_EQ(first->endpoint.host, row.host);
        EXPECT_EQ(first->endpoint, second->endpoint);
        EXPECT_EQ(first->lead, row.of_first) << row.endpoint;
        EXPECT_EQ(second->lead, row.of_second) << row.endpoint;
        EXPECT_EQ(first->warnings.size(), static_cast<std::size_t>(row.warnings)) << row.endpoint;
    }
    EXPECT_EQ(plan({"--master-addr=n1", "--master-port=6000"}, step(2, 1))->endpoint.ports.front(),
              6000);
    EXPECT_EQ(plan({"--master-port=6000"}, step(2, 1))->endpoint.host, "n1");
}

TEST(PlanMeeting, NoLoopbackForSeveralNodes) {
    for (const char* option : {"--rdzv-endpoint=localhost:29500", "--master-addr=127.0.0.1"}) {
        EXPECT_THAT(plan({option}, step(2, 1)).error().sentence(),
                    HasSubstr("own loopback address, where 2 nodes cannot meet; leave"));
        EXPECT_TRUE(plan({option}, step(1, 0))) << option;
    }
}

// A container may not know the names of the nodes: srun's own address is the batch host's, which
// is the first node's unless the step is elsewhere.
TEST(PlanMeeting, FirstNodeWhoseNameNobodyKnows) {
    Allocation a = step(2, 1);
    a.launch_node_address = "10.0.0.1";
    EXPECT_EQ(plan({}, a)->endpoint.if_unknown, "10.0.0.1");
    EXPECT_EQ(plan({"--rdzv-endpoint=n1:29500"}, a)->endpoint.if_unknown, "10.0.0.1");
    EXPECT_EQ(plan({"--rdzv-endpoint=n2:29500"}, a)->endpoint.if_unknown, "");
    a.job_nodes.insert(a.job_nodes.begin(), "n0");
    EXPECT_EQ(plan({}, a)->endpoint.if_unknown, "");
}

// Numbers that contradict the step are refused at once, or said.
TEST(PlanMeeting, StepAgainstOptions) {
    EXPECT_EQ(plan({"--nnodes=4"}, step(2, 0)).error().sentence(),
              "--nnodes=4: this step has 2 nodes (n[1-2]); leave the option out, or ask Slurm for "
              "--nodes=4");
    EXPECT_THAT(plan({"--standalone"}, step(2, 0)).error().sentence(),
                HasSubstr("each would train on its own"));
    EXPECT_EQ(plan({"--nnodes=1"}, step(2, 1)).error().sentence(),
              "--nnodes=1: this step has 2 nodes (n[1-2]), and a job of one node takes no spares; "
              "leave the option out, or use srun --nodes=1");
    EXPECT_THAT(plan({"--nnodes=1:2"}, step(4, 0))->warnings,
                ElementsAre(HasSubstr("wait as spares")));
    EXPECT_EQ(plan({"--nnodes=2:4"}, step(3, 0))->limits.min_nodes, 2);
}

// A rank that differs from Slurm's is said by one node, not by each of a thousand.
TEST(PlanMeeting, RankThatTheScriptExpandedTooEarly) {
    auto ranked = plan({"--node-rank=0"}, step(3, 1));
    EXPECT_EQ(ranked->node_rank, 1);
    EXPECT_THAT(ranked->host_warnings,
                ElementsAre("--node-rank=0 is not used: SLURM_NODEID is 1; $SLURM_PROCID that the "
                            "batch script expands is 0 on every node; leave the option out"));
    EXPECT_THAT(plan({"--node-rank=0"}, step(3, 2))->host_warnings, IsEmpty());
    EXPECT_THAT(plan({"--node-rank=1"}, step(3, 1))->host_warnings, IsEmpty());
    EXPECT_THAT(plan({"--node-rank=5"}, step(3, 0))->host_warnings,
                ElementsAre(HasSubstr("SLURM_NODEID is 0; leave")));
}

// What `hostname --ip-address` gave in a batch script whose host is none of the step's.
TEST(PlanMeeting, AddressOfAHostOutsideTheStep) {
    HostFacts host;
    host.hostname = "n1";
    host.addresses_outside_step = {"10.0.0.9"};
    const auto options = parse_options({"--rdzv-endpoint=10.0.0.9:29500", "./train"}, {}).value();
    const auto made = make_plan(options, step(2, 1), host);
    EXPECT_EQ(made->endpoint.host, "n1");
    EXPECT_EQ(made->lead, Lead::no);
    EXPECT_THAT(made->warnings, ElementsAre(HasSubstr("10.0.0.9 is not a node of this step")));
}

// One srun a node: the steps are the nodes, and the endpoint is where they meet.
TEST(PlanMeeting, StepsOfOneNodeMeet) {
    auto one = plan({"--nnodes=2", "--node-rank=1", "--rdzv-endpoint=n1:29500"}, step(1, 0));
    ASSERT_TRUE(one) << one.error();
    EXPECT_EQ(one->run_id, "lab.8812");
    EXPECT_EQ(one->limits.max_nodes, 2);
    EXPECT_EQ(one->node_rank, 1);
    EXPECT_EQ(one->lead, Lead::no);
    EXPECT_FALSE(plan({"--nnodes=2"}, step(1, 0)));
}

// Outside Slurm: alone unless a place to meet is given; who leads follows the endpoint.
TEST(PlanMeeting, OutsideSlurm) {
    auto alone = plan({}, std::nullopt);
    EXPECT_TRUE(alone->standalone);
    EXPECT_EQ(alone->run_id, "random");
    EXPECT_EQ(alone->endpoint, (Endpoint{"localhost", {0}}));
    EXPECT_EQ(plan({"--standalone", "--rdzv-id=mine"}, std::nullopt)->run_id, "mine");

    auto two = plan({"--nnodes=1:2", "--rdzv-endpoint=h"}, std::nullopt);
    EXPECT_EQ(two->run_id, "none");
    EXPECT_EQ(two->endpoint, (Endpoint{"h", {29400}}));
    EXPECT_EQ(two->lead, Lead::if_address_matches);
    EXPECT_EQ(two->node_rank, std::nullopt);
    EXPECT_THAT(two->limits.order, IsEmpty());
    EXPECT_EQ(two->node_name, "me");

    EXPECT_EQ(plan({"--nnodes=2", "--master-addr=h"}, std::nullopt)->endpoint,
              (Endpoint{"h", {29500}}));
    EXPECT_EQ(plan({"--nnodes=2", "--rdzv-endpoint=h", "--node-rank=0"}, std::nullopt)->lead,
              Lead::yes);
    EXPECT_EQ(plan({"--nnodes=2", "--rdzv-endpoint=h", "--node-rank=1"}, std::nullopt)->lead,
              Lead::no);
    EXPECT_EQ(
        plan({"--nnodes=2", "--rdzv-endpoint=h", "--rdzv-conf=is_host=1"}, std::nullopt)->lead,
        Lead::yes);
    // A rendezvous outside leads; the rank is but a rank then.
    for (const char* nodes : {"--nnodes=1", "--nnodes=2"})
        EXPECT_EQ(plan({nodes, "--rdzv-endpoint=h", "--rdzv-conf=is_host=0", "--node-rank=0"},
                       std::nullopt)
                      ->lead,
                  Lead::no);
    // Both of torchrun's forms at once: the endpoint counts.
    EXPECT_EQ(plan({"--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=h", "--master-addr=m",
                    "--master-port=1"},
                   std::nullopt)
                  ->endpoint,
              (Endpoint{"h", {29400}}));
    for (const char* option : {"--nnodes=2", "--nnodes=1:2"})
        EXPECT_THAT(plan({option}, std::nullopt).error().sentence(),
                    HasSubstr("Give --rdzv-endpoint=HOST:PORT"));
    EXPECT_FALSE(plan({"--nnodes=2", "--master-port=5"}, std::nullopt));
    EXPECT_FALSE(plan({"--nnodes=2", "--rdzv-endpoint=h:0"}, std::nullopt));
}

}  // namespace
}  // namespace ddprun::launcher
