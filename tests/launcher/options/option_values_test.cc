// How the values of options are read from their texts. Pure. Each refusal is one sentence without
// the option's name, which the caller puts in front.
#include "launcher/options/option_values.h"

#include <gtest/gtest.h>

namespace ddprun::launcher {
namespace {

using std::chrono::milliseconds;
using Worker = WorkersPerNode;

// The sentence of an error; empty: the text was accepted.
template <class T>
std::string sentence(const Result<T>& result) {
    return result ? "" : result.error().sentence();
}

// N or MIN:MAX, and nothing else. "2:1" would be a job that can never start.
TEST(OptionValues, NodeRange) {
    EXPECT_EQ(*read_node_range("4"), (NodeRange{4, 4}));
    EXPECT_EQ(*read_node_range("1:2"), (NodeRange{1, 2}));
    for (const char* bad : {"0", "2:1", "1:2:3", "four", "", "1:", ":2", "-1", "0:3"})
        EXPECT_FALSE(read_node_range(bad)) << bad;
}

// Slurm's form with a type in front (a100:4) is accepted, because scripts pass its variables on.
TEST(OptionValues, WorkersPerNode) {
    EXPECT_EQ(*read_workers_per_node("8"), (Worker{Worker::Kind::count, 8}));
    EXPECT_EQ(*read_workers_per_node("a100:4"), (Worker{Worker::Kind::count, 4}));
    EXPECT_EQ(read_workers_per_node("gpu")->kind, Worker::Kind::gpu);
    EXPECT_EQ(read_workers_per_node("cpu")->kind, Worker::Kind::cpu);
    EXPECT_EQ(read_workers_per_node("auto")->kind, Worker::Kind::automatic);
    for (const char* many : {"4097", "2147483648", "99999999999999999999"})
        EXPECT_EQ(sentence(read_workers_per_node(many)),
                  "not within 1 to 4096; give a count, auto, gpu or cpu");
    EXPECT_EQ(sentence(read_node_range("9999999999")),
              "not within 1 to 1000000; give N or MIN:MAX");
    EXPECT_EQ(sentence(read_workers_per_node("four")),
              "not a number; give a count, auto, gpu or cpu");
    EXPECT_FALSE(read_workers_per_node("0"));
}

// Names, addresses, IPv6 in brackets.
TEST(OptionValues, HostPort) {
    struct Row {
        const char* text;
        HostPort expected;
    };
    for (const Row& row : {Row{"n1:29500", {"n1", 29500}}, Row{"n1", {"n1", {}}},
                           Row{":0", {"localhost", 0}}, Row{"[fe80::1]:5", {"fe80::1", 5}},
                           Row{"[::1]", {"::1", {}}}, Row{"10.0.0.1:65535", {"10.0.0.1", 65535}}}) {
        auto read = read_host_port(row.text);
        ASSERT_TRUE(read) << row.text << ": " << read.error();
        EXPECT_EQ(*read, row.expected) << row.text;
    }
    // A URL, a blank and a shell's semicolon are mistakes too, and never part of a host's name.
    for (const char* bad : {"n1:x", "n1:65536", "n1:-1", "n1:", "[::1", "[::1]5", "fe80::1:5",
                            "http://n1:1", "n 1", "n1:1,n2:1", "n1;ls"})
        EXPECT_FALSE(read_host_port(bad)) << bad;
    // `hostname --ip-address` in a batch script prints several addresses. The sentence must say so.
    EXPECT_TRUE(
        sentence(read_host_port("10.0.0.1 10.1.0.1:29500")).starts_with("more than one address"));
}

TEST(OptionValues, Identity) {
    EXPECT_EQ(*read_identity("auto"), rendezvous::IdentityMode::automatic);
    EXPECT_EQ(*read_identity("require"), rendezvous::IdentityMode::require);
    EXPECT_EQ(*read_identity("none"), rendezvous::IdentityMode::none);
    EXPECT_FALSE(read_identity("perhaps"));
}

// The other end of a range may not be below the first, and port 0 is no port.
TEST(OptionValues, Ports) {
    EXPECT_EQ(*read_port_range("20000-20003"), (PortRange{20000, 20003}));
    EXPECT_EQ(*read_port_range("7010"), (PortRange{7010, 7010}));
    for (const char* bad : {"5-4", "0-3", "a-b", "1-70000", ""})
        EXPECT_FALSE(read_port_range(bad)) << bad;
}

TEST(OptionValues, RestartsStreamsRanks) {
    EXPECT_EQ(*read_restart_limit("0"), 0);
    EXPECT_EQ(*read_restart_limit("auto"), rendezvous::kAutoRestarts);
    EXPECT_FALSE(read_restart_limit("-1"));
    // torchrun's digits: 1 is stdout, 2 is stderr, 3 is both. Ranks that are not listed have none.
    EXPECT_EQ(read_streams("3")->of(7), (Streams{true, true}));
    auto streams = read_streams("0:1,12:2");
    EXPECT_EQ(streams->of(0), (Streams{true, false}));
    EXPECT_EQ(streams->of(12), (Streams{false, true}));
    EXPECT_EQ(streams->of(1), Streams{});
    for (const char* bad : {"4", "", "0:4", "a:1", "0:1,", "1,2"})
        EXPECT_FALSE(read_streams(bad)) << bad;
    EXPECT_EQ(*read_rank_list("0, 3"), (std::vector<int>{0, 3}));
    EXPECT_FALSE(read_rank_list("0,,1"));
}

// "nan" and "1e30" are numbers for the C library, and no times.
TEST(OptionValues, Seconds) {
    EXPECT_EQ(*read_seconds("10"), milliseconds(10'000));
    EXPECT_EQ(*read_seconds("0.5"), milliseconds(500));
    for (const char* bad : {"", "-1", "ten", "5s", "nan", "inf", "1e30"})
        EXPECT_FALSE(read_seconds(bad)) << bad;
}

// One spelling only, with a dash, as torchrun has it.
TEST(OptionValues, NumaBinding) {
    EXPECT_EQ(*read_numa_binding("core-complex"), agent::CpuBinding::core_complex);
    EXPECT_FALSE(read_numa_binding("core_complex"));
}

TEST(OptionValues, SlurmEnv) {
    EXPECT_EQ(*read_slurm_env("rewrite"), slurm::WorkerVariables::rewrite);
    EXPECT_EQ(*read_slurm_env("keep"), slurm::WorkerVariables::keep);
    EXPECT_EQ(*read_slurm_env("drop"), slurm::WorkerVariables::drop);
    EXPECT_EQ(sentence(read_slurm_env("Keep")), "not known; give rewrite, keep or drop");
}

// K, M, G and T are powers of 1024, as memory is counted. What does not fit into 64 bits is
// refused, and not cut.
TEST(OptionValues, Sizes) {
    EXPECT_EQ(*read_size("1"), 1u);
    EXPECT_EQ(*read_size("64K"), 65536u);
    EXPECT_EQ(*read_size("3G"), 3ull << 30);
    EXPECT_EQ(*read_size("1024T"), 1ull << 50);
    for (const char* bad :
         {"", "0", "K", "-1", "1.5G", "1KB", "1 G", "2000T", "99999999999999999999"})
        EXPECT_FALSE(read_size(bad)) << bad;
}

// The sentence names the part of the list that is wrong.
TEST(OptionValues, Networks) {
    EXPECT_EQ(read_networks("10.0.0.0/8, fd00::/8")->size(), 2u);
    EXPECT_EQ(read_networks("any")->at(0).prefix, 0);
    EXPECT_EQ(sentence(read_networks("10.0.0.0/8,node7")),
              "node7: not an address or network; give e.g. 10.0.0.0/8, fd00::/8 or 192.0.2.7 (any: "
              "all addresses)");
    for (const char* bad : {"", ",", "10.0.0.0/8,", "all"}) EXPECT_FALSE(read_networks(bad)) << bad;
}

TEST(OptionValues, OnJoin) {
    EXPECT_EQ(*read_on_join("restart"), rendezvous::OnJoin::restart);
    EXPECT_EQ(*read_on_join("wait"), rendezvous::OnJoin::wait);
    EXPECT_EQ(*read_on_join("spare"), rendezvous::OnJoin::spare);
    EXPECT_EQ(sentence(read_on_join("Spare")), "not known; give restart, wait or spare");
}

}  // namespace
}  // namespace ddprun::launcher
