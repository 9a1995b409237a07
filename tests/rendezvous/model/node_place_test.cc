// What each node hears of a generation (node_place.h), and how many bytes that takes. Pure; the
// last test runs the real machine.
#include "rendezvous/model/node_place.h"

#include <gmock/gmock.h>

#include "rendezvous/wire/wire.h"
#include "tests/rendezvous/machine/machine_script.h"

namespace ddprun::rendezvous {
namespace {

// Nodes of unequal size: a has 4 workers, b 1, c 2. Their roles alternate: a and c train, b serves.
// One address is the same on all of them, as that of a bridge for containers.
Assignment unequal() {
    Assignment world = assignment(3, {node("a"), node("b"), node("c")});
    world.world_size = 0;
    for (Member& member : world.members) {
        const bool serves = member.node == node("b");
        const int slots = serves ? 1 : member.node == node("a") ? 4 : 2;
        member.offer.slots = slots;
        member.offer.role = serves ? "server" : "trainer";
        member.offer.address = "at " + member.node.name;
        member.offer.addresses = {"10.0.0." + std::to_string(slots), "172.17.0.1"};
        member.offer.store_port = static_cast<std::uint16_t>(1000 + slots);
        member.offer.service_port = static_cast<std::uint16_t>(29000 + slots);
        member.rank_offset = world.world_size;
        world.world_size += slots;
    }
    world.max_restarts = 5;
    return world;
}

// The last node: its ranks begin behind the 4 of a and the 1 of b.
TEST(NodePlace, IsANodesShareOfTheWorld) {
    const auto places = places_of(unequal());
    ASSERT_EQ(places.size(), 3u);
    const NodePlace& c = places.at(node("c"));
    EXPECT_EQ(c.generation, Generation{3});
    EXPECT_EQ(c.node_rank, 2);
    EXPECT_EQ(c.nodes, 3);
    EXPECT_EQ(c.slots, 2);
    EXPECT_EQ(c.rank_offset, 5);
    EXPECT_EQ(c.world_size, 7);
    EXPECT_EQ(c.max_restarts, 5);
    EXPECT_EQ(places.at(node("b")).rank_offset, 4);
}

// A node cannot conclude this from its own place. With 1, 3 and 2 workers the third node has the
// mean, and its world looks equal.
TEST(NodePlace, SaysWhetherAllNodesHaveAsManyWorkers) {
    Assignment world = assignment(3, {node("a"), node("b"), node("c")});
    for (Member& member : world.members) member.offer.slots = 2;
    EXPECT_TRUE(places_of(world).at(node("c")).equal_slots);
    world.members[0].offer.slots = 1, world.members[1].offer.slots = 3;
    for (const auto& [id, place] : places_of(world)) EXPECT_FALSE(place.equal_slots);
}

// Ranks within a role go on from one of its nodes to the next, past the nodes of other roles.
// torchrun counts so, too (ROLE_RANK).
TEST(NodePlace, CountsWithinTheRole) {
    const auto places = places_of(unequal());
    EXPECT_EQ(places.at(node("a")).role_rank_offset, 0);
    EXPECT_EQ(places.at(node("a")).role_world_size, 6);
    EXPECT_EQ(places.at(node("b")).role_rank_offset, 0);
    EXPECT_EQ(places.at(node("b")).role_world_size, 1);
    EXPECT_EQ(places.at(node("c")).role_rank_offset, 4);
    EXPECT_EQ(places.at(node("c")).role_world_size, 6);
}

// All nodes hear where the store is. Only its own node hears who the others are: with all members
// for all nodes the messages would grow by the square.
TEST(NodePlace, NamesTheStoreToAllAndTheMembersToItsNode) {
    const auto places = places_of(unequal());
    for (const auto& [id, place] : places) {
        EXPECT_EQ(place.master_address, "at a");
        EXPECT_EQ(place.master_port, 1004);
        EXPECT_EQ(place.has_store(), id == node("a"));
        if (!place.has_store()) {
            EXPECT_THAT(place.callers, IsEmpty());
        }
    }
    const auto& callers = places.at(node("a")).callers;
    ASSERT_EQ(callers.size(), 3u);
    EXPECT_EQ(callers[1].peer, (Peer{node("b"), "at b", 29001}));
    EXPECT_THAT(callers[1].addresses, ElementsAre("10.0.0.1", "172.17.0.1"));
}

// With --task-per-worker five tasks share three hosts. Workers see one local world for each host,
// so local ranks go on across its tasks. Hosts are numbered in the order of their lowest rank.
TEST(NodePlace, CountsWithinTheHost) {
    const auto places = places_of(
        assignment(0, {node("b/0"), node("a/0"), node("c/0"), node("b/1"), node("b/2")}, 1));
    EXPECT_EQ(places.at(node("b/1")).shared, (HostPlace{0, 3, 1, 3, false}));
    EXPECT_EQ(places.at(node("b/2")).shared, (HostPlace{0, 3, 2, 3, false}));
    EXPECT_EQ(places.at(node("c/0")).shared, (HostPlace{2, 3, 0, 1, false}));
    EXPECT_EQ(places.at(node("c/0")).node_rank, 2);
    const auto equal = places_of(assignment(0, {node("b/0"), node("a/0")}, 1));
    EXPECT_TRUE(equal.at(node("a/0")).host().equal);
    // Names without a task: each node is a host of its own.
    EXPECT_FALSE(places_of(unequal()).at(node("b")).shared);
}

// Names of equal length, so that only the number of nodes can make a difference.
std::string four_digits(int number) { return std::to_string(10000 + number).substr(1); }

// A large host: 8 workers and 8 addresses.
Offer far_offer(int number) {
    Offer far = offer_of_rank(number, 8);
    far.address = "node" + four_digits(number) + ".cluster";
    for (int i = 0; i < 8; ++i)
        far.addresses.push_back("10." + std::to_string(i) + ".7." + four_digits(number));
    far.service_port = far.store_port = 40000;
    return far;
}

// The bytes of each node's Assigned when so many nodes begin their first generation. Index is the
// session; session 0 has rank 0 and so the store. Succession is on, so each Assigned also has the
// order of leaders.
std::vector<std::size_t> bytes_told(int nodes) {
    MachineConfig config = Script::config(limits(nodes, nodes));
    config.succession = true;
    Machine machine(config, at(0));
    std::vector<std::size_t> bytes(static_cast<std::size_t>(nodes));
    std::vector<Beat> beats(static_cast<std::size_t>(nodes));
    LedgerEntry creating;
    // Plays the nodes: remembers the newest Ack for the echo, and the size of an Assigned.
    const auto step = [&](double now, const Event& event) {
        for (const Effect& effect : machine.step(at(now), event)) {
            if (const auto* e = std::get_if<CreateEntry>(&effect)) creating = e->entry;
            const auto* sent = std::get_if<Send>(&effect);
            if (!sent) continue;
            const auto session = static_cast<std::size_t>(sent->session.value);
            if (const auto* ack = std::get_if<Ack>(&sent->message))
                beats[session].echo = ack->number;
            if (std::holds_alternative<Assigned>(sent->message))
                bytes[session] = encode(sent->message).size();
        }
    };
    step(0, Lead{{node("leader"), "leader", 1}});
    step(0, LedgerRead{});
    for (int i = 0; i < nodes; ++i) {
        Beat& beat = beats[static_cast<std::size_t>(i)];
        step(0, Came{Session{i}, Hello{"job", node("node" + four_digits(i)), "1", 0}});
        beat.number = 1;
        step(0, Came{Session{i}, Join{far_offer(i), beat}});
    }
    for (int i = 0; i < nodes; ++i) {
        Beat& beat = beats[static_cast<std::size_t>(i)];
        beat.number = 2;
        // The Beats that echo the first Ack make all of them candidates.
        step(0.5, Came{Session{i}, Beat(beat)});
    }
    step(0.6, LedgerCreated{LedgerCreated::Outcome::won, creating, {}});
    return bytes;
}

// A generation of a thousand nodes must not cost each node more than one of forty, but for the
// digits of the counts. When each node heard of all others, 1,024 nodes took 60 MB and 1.8 s.
TEST(NodePlace, CostsTheSameToTellHoweverManyThereAre) {
    const auto few = bytes_told(40), many = bytes_told(1000);
    EXPECT_THAT(few, testing::Each(testing::Gt(100u))) << "all of them are told";
    EXPECT_THAT(many, testing::Each(testing::Gt(100u)));
    // The store's node has 8 addresses of each of 1000 nodes, 10 bytes each at least.
    EXPECT_GT(many.front(), 8u * 1000u * 10u);
    EXPECT_LE(*std::max_element(many.begin() + 1, many.end()),
              *std::max_element(few.begin() + 1, few.end()) + 10);
}

}  // namespace
}  // namespace ddprun::rendezvous
