// The ledger of a node that follows a leader, with real folders: it is found by the leader's mark,
// so that the node can lead with it later.
#include "rendezvous/ledger/ledger_followed.h"

#include "tests/rendezvous/ledger/ledger_bench.h"

namespace ddprun::rendezvous {
namespace {

using testing::HasSubstr;

// A node that follows, with the folder of its --ledger. Its command is another one than the
// leader's, so only the mark can lead it to the ledger.
struct Node {
    LedgerBench& bench;
    LedgerPlace place;
    LedgerFollowed ledger{bench.loop, [this](std::uint64_t mark, LedgerOpened opened) {
                              open_ledger(bench.shell(), place, LedgerBench::owner("mine", 0, mark),
                                          {}, std::move(opened));
                          }};

    Node(LedgerBench& b, const std::string& folder)
        : bench(b), place{LedgerPlace::Kind::directory, folder, {}} {}
    Result<> find(std::uint64_t mark) {
        std::optional<Result<>> got;
        ledger.find(mark, [&](const Result<>& found) { got = found; });
        EXPECT_FALSE(got) << "never from within the call";
        EXPECT_TRUE(run_until(bench.loop, [&] { return got.has_value(); }));
        return *got;
    }
};

// No leader has named a ledger yet. Every call fails with a sentence instead of waiting, and
// looking for a mark that does not exist begins no ledger.
TEST(LedgerFollowed, FailsUntilItIsFound) {
    LedgerBench bench;
    const Folder folder;
    Node node(bench, folder / "job");
    EXPECT_EQ(node.ledger.mark(), 0u);
    EXPECT_THAT(bench.read(node.ledger, 0).error().sentence(), HasSubstr("has not been found"));
    const LedgerCreated created = bench.create(node.ledger, example_entry(0));
    EXPECT_EQ(created.outcome, Outcome::failed);
    EXPECT_THAT(created.sentence, HasSubstr("has not been found"));
    EXPECT_EQ(created.entry, example_entry(0));
    EXPECT_EQ(node.find(5).error().code(), ErrorCode::not_found);
    EXPECT_FALSE(std::filesystem::exists(folder / "job")) << "looking begins none";
}

// From then on both nodes read and write the same ledger.
TEST(LedgerFollowed, IsTheLeadersOnceItIsFound) {
    LedgerBench bench;
    const Folder folder;
    const auto leaders = bench.open(folder / "job");
    Node node(bench, folder / "job");
    ASSERT_TRUE(node.find((*leaders)->mark()));
    EXPECT_EQ(node.ledger.mark(), (*leaders)->mark());
    EXPECT_EQ(node.ledger.folder(), folder / "job");
    keeps_the_promises(bench, node.ledger);
    EXPECT_EQ(bench.read(**leaders, 0)->size(), 2u);
}

// A new leader names the mark that this node already has. The node must not look again: on a hung
// or lost file system it could not follow the new leader. The folder is moved away here to prove
// it.
TEST(LedgerFollowed, KnowsTheOneThatItHas) {
    LedgerBench bench;
    const Folder folder;
    const auto leaders = bench.open(folder / "job");
    Node node(bench, folder / "job");
    ASSERT_TRUE(node.find((*leaders)->mark()));
    std::filesystem::rename(folder / "job", folder / "away");
    EXPECT_TRUE(node.find((*leaders)->mark()));
}

// Another leader may lead with another ledger, and the node changes to it. What was asked of the
// old one is still answered.
TEST(LedgerFollowed, FollowsAnotherLeader) {
    LedgerBench bench;
    const Folder folder;
    const auto first = bench.open(folder / "job", LedgerBench::owner("first"));
    const auto second = bench.open(folder / "job", LedgerBench::owner("second"));
    // One entry tells the two ledgers apart.
    bench.create(**second, example_entry(0));
    Node node(bench, folder / "job");
    ASSERT_TRUE(node.find((*first)->mark()));
    // Asked of the first ledger, answered after the change: it has no entries.
    std::optional<std::size_t> owed;
    node.ledger.read(EntryNumber{0}, [&](const auto& entries) { owed = entries->size(); });
    ASSERT_TRUE(node.find((*second)->mark()));
    EXPECT_EQ(bench.read(node.ledger, 0)->size(), 1u);
    EXPECT_EQ(owed, 0u);
    // No ledger has this mark.
    EXPECT_FALSE(node.find(5));
    EXPECT_EQ(node.ledger.mark(), (*second)->mark()) << "one that is not found changes nothing";
}

// The node ends while a read and a search are under way.
TEST(LedgerFollowed, IsSilentWhenDestroyed) {
    LedgerBench bench;
    const Folder folder;
    bool called = false;
    {
        Node node(bench, folder / "job");
        node.ledger.read(EntryNumber{0}, [&](const auto&) { called = true; });
        node.ledger.find(5, [&](const Result<>&) { called = true; });
    }
    bench.loop.restart();
    bench.loop.run();
    EXPECT_FALSE(called);
}

}  // namespace
}  // namespace ddprun::rendezvous
