// Messages of the agent link to bytes and back. Pure, without any socket. wire is the only code
// that distrusts what came over the network, so these tests also send it damaged and impossible
// messages. The examples (tests/rendezvous/examples.h) set each field to a value that is not its
// default.
#include "rendezvous/wire/wire.h"

#include <gmock/gmock.h>

#include <random>

#include "proto/agent_link.pb.h"
#include "rendezvous/wire/frame.h"
#include "tests/rendezvous/examples.h"

namespace ddprun::rendezvous {
namespace {

using testing::HasSubstr;

// A field that is added to a message and forgotten here would silently arrive as its default.
TEST(Wire, CarriesEveryMessageToTheLeaderUnchanged) {
    for (const ToLeader& message : examples_to_leader()) {
        const auto back = decode_to_leader(encode(message));
        ASSERT_TRUE(back) << back.error();
        EXPECT_EQ(*back, message) << message.index();
    }
}

TEST(Wire, CarriesEveryMessageToTheNodeUnchanged) {
    for (const ToNode& message : examples_to_node()) {
        const auto back = decode_to_node(encode(message));
        ASSERT_TRUE(back) << back.error();
        EXPECT_EQ(*back, message) << message.index();
    }
}

// A standstill makes a Beat only a little longer: seven workers wait, and one sleeps.
TEST(Wire, TellsAStandstillInFewBytes) {
    Beat beat;
    beat.number = 1;
    const std::size_t moving = encode(ToLeader(beat)).size();
    using std::chrono::seconds;
    beat.still = {{0b1111'1110, Doing::in_collective, seconds{17}, seconds{2}, ~0U},
                  {0b0000'0001, Doing::sleeps, seconds{18}, seconds{2}, ~0U}};
    EXPECT_LE(encode(ToLeader(beat)).size(), moving + 64);
    // Four kinds are the most that are told, of at most 64 workers. All fields are there, and long.
    const Still longest{~0ULL,
                        Doing::is_stopped,
                        std::chrono::hours{999},
                        std::chrono::hours{999},
                        ~0U,
                        std::chrono::hours{999},
                        ~0U,
                        ~0U};
    beat.still = {longest, longest, longest, longest};
    EXPECT_LE(encode(ToLeader(beat)).size(), moving + 256);
}

// So does the pace of a job that trains.
TEST(Wire, TellsAPaceInFewBytes) {
    Beat beat;
    beat.number = 1;
    const std::size_t before = encode(ToLeader(beat)).size();
    beat.pace = {.outside = 96, .slowest = 7, .others = 32};
    EXPECT_LE(encode(ToLeader(beat)).size(), before + 10);
}

// Every cut of every message, and thousands of altered ones. The answer is a message or an error,
// never a crash, since any caller that reaches the port can send such bytes. What is accepted is
// within the limits.
TEST(Wire, SurvivesCutAndAlteredBytes) {
    // A fixed seed: a failure comes again in the next run.
    std::mt19937 random(1);
    for (const ToLeader& message : examples_to_leader()) {
        const std::string bytes = encode(message);
        for (std::size_t size = 0; size < bytes.size(); ++size)
            if (!decode_to_leader(bytes.substr(0, size))) continue;
        for (int i = 0; i < 3000; ++i) {
            std::string altered = bytes;
            // Three bytes. With more, hardly any message could still be read.
            for (int n = 0; n < 3; ++n)
                altered[random() % altered.size()] = static_cast<char>(random());
            const auto taken = decode_to_leader(altered);
            if (taken && std::holds_alternative<Join>(*taken)) {
                EXPECT_GE(std::get<Join>(*taken).offer.slots, 1);
                EXPECT_LE(std::get<Join>(*taken).offer.slots, 4096);
            }
        }
    }
    for (const ToNode& message : examples_to_node()) {
        for (int i = 0; i < 3000; ++i) {
            std::string altered = encode(message);
            for (int n = 0; n < 3; ++n)
                altered[random() % altered.size()] = static_cast<char>(random());
            const auto taken = decode_to_node(altered);
            if (taken && std::holds_alternative<Assigned>(*taken)) {
                const NodePlace& place = std::get<Assigned>(*taken).place;
                EXPECT_LE(place.rank_offset + place.slots, place.world_size);
                EXPECT_LT(place.node_rank, place.nodes);
            }
        }
    }
}

// The sentence of the fault after this change to a right Join; empty: it was accepted. The change
// is made in the protobuf message, since encode() would not write such a value.
template <class Change>
std::string fault_of_join(Change change) {
    link::ToLeader message;
    const std::string bytes = encode(ToLeader(Join{example_offer(), example_beat()}));
    EXPECT_TRUE(message.ParseFromString(bytes));
    change(*message.mutable_join());
    const auto decoded = decode_to_leader(message.SerializeAsString());
    if (decoded) return "";
    EXPECT_EQ(decoded.error().code(), ErrorCode::malformed);
    return decoded.error().sentence();
}

// The sentence names the field, the value and the limit. It is the only hint when another program
// speaks on the port, or when bytes arrive damaged.
TEST(Wire, NamesTheFieldThatIsWrong) {
    EXPECT_EQ(fault_of_join([](link::Join& j) { j.mutable_offer()->set_slots(0); }),
              "Join.offer.slots: 0 is not 1..4096");
    EXPECT_EQ(fault_of_join([](link::Join& j) { j.mutable_offer()->set_slots(4097); }),
              "Join.offer.slots: 4097 is not 1..4096");
    EXPECT_EQ(fault_of_join([](link::Join& j) { j.mutable_offer()->set_store_port(65536); }),
              "Join.offer.store_port: 65536 is not 0..65535");
    EXPECT_EQ(
        fault_of_join([](link::Join& j) { j.mutable_offer()->set_address(std::string(300, 'a')); }),
        "Join.offer.address: 300 bytes (limit 255)");
    EXPECT_THAT(fault_of_join([](link::Join& j) { j.mutable_beat()->set_floor(-2); }),
                HasSubstr("Join.beat.floor: -2 is not -1.."));
    EXPECT_THAT(fault_of_join([](link::Join& j) {
                    for (int i = 0; i < 300; ++i) j.mutable_offer()->add_addresses("a");
                }),
                HasSubstr("elements (limit 256)"));
}

// ddprun-rendezvous makes a job of the limits in the first Hello of a run. With impossible limits
// it would make a job that never starts or never ends.
TEST(Wire, RefusesLimitsThatNoJobCanHave) {
    const auto fault = [](const Limits& limits) {
        const auto read = decode_to_leader(
            encode(ToLeader(Hello{"8812", {"gpu01", Incarnation{7}}, "0.1.0", 0, limits})));
        return read ? "" : read.error().sentence();
    };
    Limits limits = example_limits();
    // A job of one node needs no rendezvous outside.
    limits.max_nodes = 1;
    EXPECT_EQ(fault(limits), "Hello.limits.max_nodes: 1 is not 2..100000");
    limits = example_limits();
    limits.times.lease = Duration{0};
    EXPECT_THAT(fault(limits), HasSubstr("Hello.limits.times.lease"));
    limits = example_limits();
    limits.max_restarts = -2;
    EXPECT_THAT(fault(limits), HasSubstr("Hello.limits.max_restarts: -2 is not -1.."));
    limits = example_limits();
    limits.on_join = static_cast<OnJoin>(3);
    EXPECT_EQ(fault(limits), "Hello.limits.on_join: 3 is not 0..2");
    limits = example_limits();
    limits.join_interval = -std::chrono::seconds{1};
    EXPECT_THAT(fault(limits), HasSubstr("Hello.limits.join_interval"));
}

// The longest time that an option takes (launcher/options/option_values.cc) must pass here too.
// Else a job with a valid command line could never start.
TEST(Wire, CarriesTimesOfALeapYear) {
    Limits limits = example_limits();
    limits.times.join_timeout = limits.join_interval = std::chrono::hours{366 * 24};
    const auto read = decode_to_leader(
        encode(ToLeader(Hello{"8812", {"gpu01", Incarnation{7}}, "0.1.0", 0, limits})));
    ASSERT_TRUE(read) << read.error();
    EXPECT_EQ(std::get<Hello>(*read).limits, limits);
}

// Workers are numbered by this place. A rank outside of its world would wait for peers that do not
// exist.
TEST(Wire, RefusesAPlaceThatIsOutsideItsWorld) {
    const auto fault = [](auto change) {
        Assigned assigned{EntryNumber{6}, example_place(), 9, Duration::max()};
        change(assigned.place);
        const auto read = decode_to_node(encode(ToNode(assigned)));
        return read ? "" : read.error().sentence();
    };
    EXPECT_EQ(fault([](NodePlace&) {}), "");
    EXPECT_EQ(fault([](NodePlace& p) { p.rank_offset = 17; }),
              "Assigned.place.rank_offset: 17 is not 0..16");
    EXPECT_EQ(fault([](NodePlace& p) { p.slots = 21; }), "Assigned.place.slots: 21 is not 1..20");
    EXPECT_EQ(fault([](NodePlace& p) { p.node_rank = 3; }),
              "Assigned.place.node_rank: 3 is not 0..2");
    EXPECT_EQ(fault([](NodePlace& p) { p.role_rank_offset = 3; }),
              "Assigned.place.role_rank_offset: 3 is not 0..2");
    EXPECT_EQ(fault([](NodePlace& p) { p.role_world_size = 21; }),
              "Assigned.place.role_world_size: 21 is not 4..20");
    EXPECT_THAT(fault([](NodePlace& p) { p = {}, p.nodes = 0; }),
                HasSubstr("Assigned.place.nodes: 0 is not 1.."));
}

// As from a newer version: an empty message has no kind, and the other one is no protobuf at all.
TEST(Wire, RefusesAMessageItDoesNotKnow) {
    EXPECT_THAT(decode_to_leader("").error().sentence(),
                HasSubstr("ToLeader.message: unknown; does the"));
    EXPECT_THAT(decode_to_node("\xff").error().sentence(), HasSubstr("no protobuf message"));
}

// The largest report that a node can make: 4096 workers fail at once, each with long last words. It
// must fit into a frame, or the leader would refuse the report and never learn of the failure. The
// signal of the last worker is still there.
TEST(Wire, CutsTheTextsOfAReport) {
    WorkerOutcome loud = example_outcome();
    loud.sentence.assign(10000, 's');
    loud.tail.assign(3, std::string(5000, 't'));
    const std::string bytes = encode(ToLeader(Report{Generation{1}, std::vector(4096, loud)}));
    EXPECT_LT(bytes.size(), kNodeFrameLimit);
    const auto back = decode_to_leader(bytes);
    ASSERT_TRUE(back) << back.error();
    const Report& report = std::get<Report>(*back);
    ASSERT_EQ(report.outcomes.size(), 4096u);
    EXPECT_EQ(report.outcomes[0].sentence.size(), 4096u);
    EXPECT_EQ(report.outcomes[4095].signal, 9);
}

// A node has found out more than a message may hold. If it sent all, the leader would refuse the
// message, and the node would send it again and again.
TEST(Wire, CutsListsToWhatAReaderTakes) {
    WorkerOutcome outcome = example_outcome();
    outcome.remarks.assign(25, "remark");
    auto back = decode_to_leader(encode(ToLeader(Report{Generation{1}, {outcome}})));
    ASSERT_TRUE(back) << back.error();
    EXPECT_EQ(std::get<Report>(*back).outcomes.front().remarks.size(), 20u);
    Join join{example_offer(), example_beat(), 0, 0, {}};
    join.offer.addresses.assign(300, "10.0.0.7");
    back = decode_to_leader(encode(ToLeader(join)));
    ASSERT_TRUE(back) << back.error();
    EXPECT_EQ(std::get<Join>(*back).offer.addresses.size(), 256u);
}

}  // namespace
}  // namespace ddprun::rendezvous
