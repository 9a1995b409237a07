// Where the nodes of a job meet, and which one leads at the start. Pure: Slurm's variables are
// given as an Allocation, and no host is asked. Each node plans for itself, so the plans of all
// nodes must agree.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/plan/make_plan.h"

#include "launcher/plan/plan_meeting.h"

namespace ddprun::launcher {
namespace {

using slurm::Allocation;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// Step 8812.0 of so many nodes (n1, n2, …), seen from one of them. The job has one more node,
// "other", on which this step does not run.
Allocation meeting_step(int nodes, int node_id) {
    Allocation a;
    a.cluster = "lab", a.job_id = "8812", a.step_id = "0";
    for (int i = 1; i <= nodes; ++i) a.nodes.push_back("n" + std::to_string(i));
    a.job_nodes = a.nodes;
    a.job_nodes.push_back("other");
    a.node_id = node_id;
    a.node_name = a.nodes[static_cast<std::size_t>(node_id)];
    return a;
}

// What these options mean on a host without GPUs. The program is always ./train.
Result<Plan> meeting_plan(const std::vector<std::string>& options,
                          std::optional<Allocation> allocation) {
    auto words = options;
    words.push_back("./train");
    HostFacts host;
    host.hostname = "me";
    host.working_directory = "/home/user";
    host.random_id = "random";
    return make_plan(parse_options(words, {}).value(), allocation, host);
}

// Without an option the step says all: id, nodes, order, place, and its first node leads. A job of
// one node needs no meeting.
TEST(PlanMeeting, AStepNeedsNoOption) {
    auto first = meeting_plan({}, meeting_step(4, 0)), last = meeting_plan({}, meeting_step(4, 3));
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
    EXPECT_TRUE(meeting_plan({}, meeting_step(1, 0))->standalone);
}

// Clusters have several networks, and each node has another address in each. With --interface all
// nodes take their address of the same network.
TEST(PlanMeeting, AddressOfAnInterface) {
    HostFacts host;
    host.interfaces = {{"lo", "127.0.0.1"},    {"eth0", "10.0.0.7"},  {"ib0", "fe80::1"},
                       {"ib0", "fd00::7"},     {"ib1", "fe80::2"},    {"hsn0", "fd00::8"},
                       {"hsn0", "10.249.0.7"}, {"hsn0", "10.249.1.7"}};
    const auto with = [&](std::vector<std::string> words, int nodes = 4) {
        words.push_back("./train");
        return make_plan(parse_options(words, {}).value(), meeting_step(nodes, 0), host);
    };
    EXPECT_EQ(with({"--interface=eth0"})->local_addr, "10.0.0.7");
    // The first IPv4 address counts. fe80:: addresses are valid on their own link only, so ib0 has
    // fd00::7.
    EXPECT_EQ(with({"--interface=hsn0"})->local_addr, "10.249.0.7");
    EXPECT_EQ(with({"--interface=ib0"})->local_addr, "fd00::7");
    EXPECT_EQ(with({})->local_addr, std::nullopt);
    for (const char* none : {"--interface=ib1", "--interface=ib7"})
        EXPECT_EQ(with({none}).error().sentence(),
                  std::string(none) +
                      ": n1 has no address on this interface, but on lo, eth0, ib0" +
                      (none == std::string("--interface=ib7") ? ", ib1" : "") + ", hsn0");
    // Loopback is refused, but for a job of one node.
    EXPECT_THAT(with({"--interface=lo"}).error().sentence(), HasSubstr("own loopback address"));
    EXPECT_TRUE(with({"--interface=lo"}, 1));
    EXPECT_THAT(with({"--interface=eth0", "--local-addr=10.0.0.7"}).error().sentence(),
                HasSubstr("leave one of them out"));
}

// Jobs share nodes. So the ports follow from job and step: equal on all nodes, and apart for
// neighbouring steps. They lie below 32768, where Linux gives out ports itself.
TEST(PlanMeeting, PortsOfAStep) {
    Allocation a = meeting_step(2, 0), b = a;
    b.step_id = "1";
    auto ports = derived_ports(a);
    EXPECT_EQ(ports.size(), 4u);
    for (int port : ports) {
        EXPECT_GE(port, 20000);
        EXPECT_LT(port, 30000);
        EXPECT_THAT(derived_ports(b), testing::Not(testing::Contains(port)));
    }
    // Slurm may reserve ports for a step (srun --resv-ports). A port of the user's is tried before
    // these.
    a.reserved_ports = {20001, 20002};
    EXPECT_THAT(meeting_plan({}, a)->endpoint.ports, ElementsAre(20001, 20002));
    EXPECT_THAT(meeting_plan({"--ports=7010-7012"}, a)->endpoint.ports,
                ElementsAre(7010, 7011, 7012));
    EXPECT_THAT(meeting_plan({"--rdzv-endpoint=n1:6000"}, a)->endpoint.ports,
                ElementsAre(6000, 20001, 20002));
}

// Scripts for torchrun find the first node in many ways. The endpoint is used where it can be
// right, and its node leads. "other" is a node of the job but not of the step, so nobody could
// answer there.
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
             // A name of another network or an address: only the hosts themselves know whose it is.
             Row{"n1i:29500", "n1i", Lead::if_address_matches, Lead::if_address_matches, 0},
             Row{"10.0.0.1", "10.0.0.1", Lead::if_address_matches, Lead::if_address_matches, 0},
             Row{"other:29500", "n1", Lead::yes, Lead::no, 1},
         }) {
        auto first = meeting_plan({"--rdzv-endpoint", row.endpoint}, meeting_step(2, 0));
        auto second = meeting_plan({"--rdzv-endpoint", row.endpoint}, meeting_step(2, 1));
        ASSERT_TRUE(first && second) << row.endpoint;
        EXPECT_EQ(first->endpoint.host, row.host);
        EXPECT_EQ(first->endpoint, second->endpoint);
        EXPECT_EQ(first->lead, row.of_first) << row.endpoint;
        EXPECT_EQ(second->lead, row.of_second) << row.endpoint;
        EXPECT_EQ(first->warnings.size(), static_cast<std::size_t>(row.warnings)) << row.endpoint;
    }
    EXPECT_EQ(meeting_plan({"--master-addr=n1", "--master-port=6000"}, meeting_step(2, 1))
                  ->endpoint.ports.front(),
              6000);
    EXPECT_EQ(meeting_plan({"--master-port=6000"}, meeting_step(2, 1))->endpoint.host, "n1");
}

// Each node would wait for the others on its own loopback.
TEST(PlanMeeting, NoLoopbackForSeveralNodes) {
    for (const char* option : {"--rdzv-endpoint=localhost:29500", "--master-addr=127.0.0.1"}) {
        EXPECT_THAT(meeting_plan({option}, meeting_step(2, 1)).error().sentence(),
                    HasSubstr("own loopback address, where 2 nodes cannot meet; leave"));
        EXPECT_TRUE(meeting_plan({option}, meeting_step(1, 0))) << option;
    }
}

// A container may not know the names of the nodes. Slurm gives the address of srun's host. It is
// that of the first node, if the step begins on the job's first node.
TEST(PlanMeeting, FirstNodeWhoseNameNobodyKnows) {
    Allocation a = meeting_step(2, 1);
    a.launch_node_address = "10.0.0.1";
    EXPECT_EQ(meeting_plan({}, a)->endpoint.if_unknown, "10.0.0.1");
    EXPECT_EQ(meeting_plan({"--rdzv-endpoint=n1:29500"}, a)->endpoint.if_unknown, "10.0.0.1");
    EXPECT_EQ(meeting_plan({"--rdzv-endpoint=n2:29500"}, a)->endpoint.if_unknown, "");
    // Now srun runs on n0, which is no node of the step.
    a.job_nodes.insert(a.job_nodes.begin(), "n0");
    EXPECT_EQ(meeting_plan({}, a)->endpoint.if_unknown, "");
}

// The batch script starts one node itself, and a step has the others. All have the same id: the one
// of the script knows no step.
TEST(PlanMeeting, AStepThatIsOnlyAPart) {
    const std::vector<std::string> options{"--nnodes=3", "--rdzv-endpoint=n0:29500"};
    const auto part = meeting_plan(options, meeting_step(2, 1)),
               whole = meeting_plan(options, std::nullopt);
    ASSERT_TRUE(part) << part.error().sentence();
    EXPECT_EQ(part->run_id, whole->run_id);
    EXPECT_EQ(part->endpoint, whole->endpoint);
    EXPECT_EQ(part->limits.min_nodes, 3);
    EXPECT_EQ(part->node_name, "n2");
    EXPECT_EQ(part->lead, Lead::if_address_matches);
    EXPECT_THAT(part->notes, testing::Contains(HasSubstr("this step has 2 nodes; the other")));
    EXPECT_TRUE(meeting_plan({"--nnodes=1:3", "--rdzv-endpoint=n1:29500"}, meeting_step(2, 1))
                    ->limits.order.size());
}

// The key of a run is made of a name that all its nodes know. A node that the batch script starts
// knows neither job nor step, so where nodes meet across steps all take the leader's number.
TEST(PlanMeeting, AllNodesOfARunHaveOneKey) {
    const std::vector<std::string> options{"--nnodes=3", "--rdzv-endpoint=n0:29500", "--rdzv-id=x"};
    EXPECT_EQ(meeting_plan(options, std::nullopt)->workers.run, "");
    EXPECT_EQ(meeting_plan(options, meeting_step(2, 1))->workers.run, "");
    EXPECT_EQ(meeting_plan(options, meeting_step(1, 0))->workers.run, "");
    // A step that is the whole run keeps its key when it is requeued.
    EXPECT_EQ(meeting_plan({}, meeting_step(3, 0))->workers.run, "lab.8812.0");
    EXPECT_EQ(meeting_plan({}, meeting_step(3, 2))->workers.run, "lab.8812.0");
    EXPECT_EQ(meeting_plan({}, meeting_step(1, 0))->workers.run, "lab.8812.0");
}

// Nothing needs to be waited for. A job of one node only listens there.
TEST(PlanMeeting, AnEndpointThatNoHostCanHave) {
    for (const char* host :
         {"0.0.0.0", "255.255.255.255", "224.0.0.1", "240.0.0.1", "[::]", "[::0]", "[ff02::1]"}) {
        const std::string endpoint = std::string("--rdzv-endpoint=") + host + ":29500";
        for (const auto& step :
             {std::optional(meeting_step(3, 0)), std::optional<slurm::Allocation>()})
            EXPECT_THAT(meeting_plan({"--nnodes=3", endpoint}, step).error().sentence(),
                        HasSubstr("is the address of no host, so 3 nodes cannot meet there"))
                << host;
        EXPECT_TRUE(meeting_plan({"--nnodes=1", endpoint}, std::nullopt)) << host;
    }
    for (const char* host : {"10.0.0.1", "223.0.0.1", "[fd77::ff]", "[::5]", "n1", "ff", "00n"})
        EXPECT_TRUE(meeting_plan({"--nnodes=3", std::string("--rdzv-endpoint=") + host + ":29500"},
                                 std::nullopt))
            << host;
}

// An endpoint that may be nobody's. A name that no host has is one for certain.
TEST(PlanMeeting, AnEndpointThatIsNobodys) {
    const std::vector<std::string> options{"--rdzv-endpoint=10.9.9.9:29500"};
    EXPECT_EQ(
        meeting_plan(options, meeting_step(3, 0))->endpoint_doubt,
        "nobody answers at the endpoint 10.9.9.9 yet, which is no address of this node (n1); "
        "if it is none of the other nodes' of this step (n[1-3]), nobody ever will: leave "
        "--rdzv-endpoint and --master-addr out, since Slurm knows the first node of the step");
    EXPECT_EQ(meeting_plan(options, meeting_step(3, 1))->endpoint_doubt, "") << "one node says it";
    EXPECT_EQ(meeting_plan({"--rdzv-endpoint=n1:29500"}, meeting_step(3, 0))->endpoint_doubt, "");
    EXPECT_THAT(
        meeting_plan({"--nnodes=2", "--rdzv-endpoint=10.9.9.9:1"}, std::nullopt)->endpoint_doubt,
        HasSubstr("start ddprun on that host, too"));
    HostFacts host;
    host.endpoint_unknown = true;
    EXPECT_EQ(
        make_plan(parse_options({"--rdzv-endpoint=n9:1", "./train"}, {}).value(),
                  meeting_step(2, 0), host)
            .error()
            .sentence(),
        "the endpoint n9: no host of this name is known on n1, and it is no node of this step "
        "(n[1-2]); leave --rdzv-endpoint and --master-addr out: Slurm knows the first node of "
        "the step");
}

// Options that contradict the step: a job that waits for nodes which Slurm will not give, or one
// that leaves nodes idle. The sentence says what to change.
TEST(PlanMeeting, StepAgainstOptions) {
    EXPECT_EQ(meeting_plan({"--nnodes=4"}, meeting_step(2, 0)).error().sentence(),
              "--nnodes=4: this step has 2 nodes (n[1-2]); leave the option out, or ask Slurm for "
              "--nodes=4");
    EXPECT_THAT(meeting_plan({"--standalone"}, meeting_step(2, 0)).error().sentence(),
                HasSubstr("each would train on its own"));
    EXPECT_EQ(
        meeting_plan({"--nnodes=1"}, meeting_step(2, 1)).error().sentence(),
        "--nnodes=1: this step has 2 nodes (n[1-2]), but a job of one node cannot use the others; "
        "leave the option out, or use srun --nodes=1");
    EXPECT_THAT(meeting_plan({"--nnodes=1:2"}, meeting_step(4, 0))->warnings,
                ElementsAre(HasSubstr("wait as spares")));
    EXPECT_EQ(meeting_plan({"--nnodes=2:4"}, meeting_step(3, 0))->limits.min_nodes, 2);
}

// A batch script that writes --node-rank=$SLURM_PROCID expands it before srun: 0 on every node.
// Slurm's number is used, and the second node alone says so, since a thousand equal lines help
// nobody.
TEST(PlanMeeting, RankThatTheScriptExpandedTooEarly) {
    auto ranked = meeting_plan({"--node-rank=0"}, meeting_step(3, 1));
    EXPECT_EQ(ranked->node_rank, 1);
    EXPECT_THAT(
        ranked->host_warnings,
        ElementsAre("--node-rank=0 is not used: SLURM_NODEID is 1; if the batch script expands "
                    "$SLURM_PROCID, it is 0 on every node; leave the option out"));
    EXPECT_THAT(meeting_plan({"--node-rank=0"}, meeting_step(3, 2))->host_warnings, IsEmpty());
    EXPECT_THAT(meeting_plan({"--node-rank=1"}, meeting_step(3, 1))->host_warnings, IsEmpty());
    EXPECT_THAT(meeting_plan({"--node-rank=5"}, meeting_step(3, 0))->host_warnings,
                ElementsAre(HasSubstr("SLURM_NODEID is 0; leave")));
}

// A batch script takes `hostname --ip-address`, but its host is none of the step's.
TEST(PlanMeeting, AddressOfAHostOutsideTheStep) {
    HostFacts host;
    host.hostname = "n1";
    host.addresses_outside_step = {"10.0.0.9"};
    const auto options = parse_options({"--rdzv-endpoint=10.0.0.9:29500", "./train"}, {}).value();
    const auto made = make_plan(options, meeting_step(2, 1), host);
    EXPECT_EQ(made->endpoint.host, "n1");
    EXPECT_EQ(made->lead, Lead::no);
    EXPECT_THAT(made->warnings, ElementsAre(HasSubstr("10.0.0.9 is not a node of this step")));
}

// docker0 has the same address on each host. In a step its first node leads; elsewhere nobody knows
// whether containers of this host are meant.
TEST(PlanMeeting, AddressOfABridgeThatEachHostHas) {
    HostFacts host;
    host.hostname = "n2";
    host.endpoint_bridge = "docker0";
    const std::vector<std::string> words{"--nnodes=1:3", "--rdzv-endpoint=172.17.0.1:29500",
                                         "./train"};
    const auto options = parse_options(words, {}).value();
    for (const int node : {0, 1}) {
        const auto made = make_plan(options, meeting_step(3, node), host);
        EXPECT_EQ(made->endpoint.host, "n1");
        EXPECT_EQ(made->lead, node == 0 ? Lead::yes : Lead::no);
        EXPECT_THAT(made->warnings,
                    Contains("the endpoint 172.17.0.1 is an address of docker0, a bridge that each "
                             "host has for itself; the nodes meet at n1, the first node of the "
                             "step; leave the option out"));
    }
    const auto elsewhere = make_plan(options, std::nullopt, host);
    EXPECT_EQ(elsewhere->lead, Lead::if_address_matches);
    EXPECT_THAT(elsewhere->host_warnings, ElementsAre(HasSubstr("a bridge to containers or")));
    host.endpoint_bridge.clear();
    EXPECT_THAT(make_plan(options, meeting_step(3, 1), host)->warnings,
                Not(Contains(HasSubstr("bridge"))));
}

// Scripts that call srun once for each node: each step has one node. The nodes meet at the
// endpoint, and the run id leaves out the step's number, which differs.
TEST(PlanMeeting, StepsOfOneNodeMeet) {
    auto one = meeting_plan({"--nnodes=2", "--node-rank=1", "--rdzv-endpoint=n1:29500"},
                            meeting_step(1, 0));
    ASSERT_TRUE(one) << one.error();
    EXPECT_EQ(one->run_id, "lab.8812");
    EXPECT_EQ(one->limits.max_nodes, 2);
    EXPECT_EQ(one->node_rank, 1);
    EXPECT_EQ(one->lead, Lead::no);
    EXPECT_FALSE(meeting_plan({"--nnodes=2"}, meeting_step(1, 0)));
}

// Alone unless a place to meet is given. Which node leads follows the rank or the endpoint, as in
// torchrun.
TEST(PlanMeeting, OutsideSlurm) {
    auto alone = meeting_plan({}, std::nullopt);
    EXPECT_TRUE(alone->standalone);
    EXPECT_EQ(alone->run_id, "random");
    EXPECT_EQ(alone->endpoint, (Endpoint{"localhost", {0}}));
    EXPECT_EQ(meeting_plan({"--standalone", "--rdzv-id=mine"}, std::nullopt)->run_id, "mine");

    auto two = meeting_plan({"--nnodes=1:2", "--rdzv-endpoint=h"}, std::nullopt);
    EXPECT_EQ(two->run_id, "none");
    // torchrun's ports: 29400 for the rendezvous, 29500 for --master-addr.
    EXPECT_EQ(two->endpoint, (Endpoint{"h", {29400}}));
    EXPECT_EQ(two->lead, Lead::if_address_matches);
    EXPECT_EQ(two->node_rank, std::nullopt);
    EXPECT_THAT(two->limits.order, IsEmpty());
    EXPECT_EQ(two->node_name, "me");

    EXPECT_EQ(meeting_plan({"--nnodes=2", "--master-addr=h"}, std::nullopt)->endpoint,
              (Endpoint{"h", {29500}}));
    EXPECT_EQ(
        meeting_plan({"--nnodes=2", "--rdzv-endpoint=h", "--node-rank=0"}, std::nullopt)->lead,
        Lead::yes);
    EXPECT_EQ(
        meeting_plan({"--nnodes=2", "--rdzv-endpoint=h", "--node-rank=1"}, std::nullopt)->lead,
        Lead::no);
    EXPECT_EQ(
        meeting_plan({"--nnodes=2", "--rdzv-endpoint=h", "--rdzv-conf=is_host=1"}, std::nullopt)
            ->lead,
        Lead::yes);
    // ddprun-rendezvous leads outside of the job. Rank 0 is only a rank then.
    for (const char* nodes : {"--nnodes=1", "--nnodes=2"})
        EXPECT_EQ(
            meeting_plan({nodes, "--rdzv-endpoint=h", "--rdzv-conf=is_host=0", "--node-rank=0"},
                         std::nullopt)
                ->lead,
            Lead::no);
    // Both of torchrun's forms at once: the endpoint counts.
    EXPECT_EQ(meeting_plan({"--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=h",
                            "--master-addr=m", "--master-port=1"},
                           std::nullopt)
                  ->endpoint,
              (Endpoint{"h", {29400}}));
    for (const char* option : {"--nnodes=2", "--nnodes=1:2"})
        EXPECT_THAT(meeting_plan({option}, std::nullopt).error().sentence(),
                    HasSubstr("; give --rdzv-endpoint=HOST:PORT"));
    EXPECT_FALSE(meeting_plan({"--nnodes=2", "--master-port=5"}, std::nullopt));
    EXPECT_FALSE(meeting_plan({"--nnodes=2", "--rdzv-endpoint=h:0"}, std::nullopt));
}

}  // namespace
}  // namespace ddprun::launcher
