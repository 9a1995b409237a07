// The ledger of a job of one node, whose folder is written behind it: what is answered at once,
// what waits for the folder, and what a folder does to it that is late, full or missing.
#include "rendezvous/ledger/ledger_behind.h"

#include "tests/rendezvous/ledger/ledger_bench.h"

namespace ddprun::rendezvous {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// A folder that answers when the test says so.
struct Slow final : Ledger {
    explicit Slow(asio::io_context& l) : loop(l) {}
    void read(EntryNumber, ReadDone) override { ADD_FAILURE() << "nobody asks for it"; }
    void create(LedgerEntry entry, CreateDone done) override {
        EXPECT_FALSE(answer) << "two at once";
        asked.push_back(entry.number.value);
        answer = [entry, done = std::move(done)](Outcome outcome, const LedgerEntry* stands) {
            done({outcome, stands ? *stands : entry,
                  outcome == Outcome::failed ? "no space left" : ""});
        };
    }
    void look(EntryNumber, LookDone done) override {
        asio::post(loop, [this, done] { done(newest); });
    }
    std::string name() const override { return "slow"; }
    std::uint64_t mark() const override { return 9; }
    std::string folder() const override { return "/slow"; }

    void answers(Outcome outcome) {
        ASSERT_TRUE(answer);
        std::exchange(answer, nullptr)(outcome, nullptr);
    }
    void loses_to(const LedgerEntry& stands) {
        ASSERT_TRUE(answer);
        std::exchange(answer, nullptr)(Outcome::lost, &stands);
    }

    asio::io_context& loop;
    std::vector<std::int64_t> asked;
    std::function<void(Outcome, const LedgerEntry*)> answer;
    Result<int> newest = -1;
};

class LedgerBehindTest : public testing::Test {
  protected:
    LedgerBehindTest()
        : ledger(
              bench.loop, [this](LedgerOpened done) { opened = std::move(done); },
              bench.lines.log()) {}
    void open() {
        auto slow = std::make_unique<Slow>(bench.loop);
        below = slow.get();
        opened(std::unique_ptr<Ledger>(std::move(slow)));
    }
    // A create whose answer comes later; `created` has it then.
    void ask(const LedgerEntry& entry) {
        created.reset();
        ledger.create(entry, [this](LedgerCreated got) { created = std::move(got); });
    }

    LedgerBench bench;
    LedgerOpened opened;
    Slow* below = nullptr;
    std::optional<LedgerCreated> created;
    LedgerBehind ledger;
};

// The start of the job waits for nothing, whatever the file system does.
TEST_F(LedgerBehindTest, TheFirstGenerationWaitsForNoFolder) {
    EXPECT_THAT(*bench.read(ledger, 0), IsEmpty());
    EXPECT_EQ(bench.create(ledger, example_entry(0)).outcome, Outcome::won);
    EXPECT_NE(ledger.mark(), 0u) << "or nobody would look for a newer allocation";
    EXPECT_EQ(ledger.folder(), "");
    EXPECT_FALSE(bench.look(ledger, 1)) << "nobody can know yet";
    open();
    EXPECT_THAT(below->asked, ElementsAre(0));
    below->answers(Outcome::won);
    EXPECT_EQ(ledger.mark(), 9u);
    EXPECT_EQ(ledger.folder(), "/slow");
    below->newest = 3;
    EXPECT_EQ(*bench.look(ledger, 1), 3);
    EXPECT_THAT(*bench.read(ledger, 0), ElementsAre(example_entry(0)));
}

// A restart that counted before the folder has it could not lose to a newer allocation.
TEST_F(LedgerBehindTest, Rule26p_ALaterGenerationWaitsForTheFolder) {
    bench.create(ledger, example_entry(0));
    ask(example_entry(1));
    settle(bench.loop);
    EXPECT_FALSE(created);
    open();
    below->answers(Outcome::won);
    settle(bench.loop);
    EXPECT_FALSE(created);
    below->answers(Outcome::won);
    ASSERT_TRUE(created);
    EXPECT_EQ(created->outcome, Outcome::won);
    EXPECT_THAT(below->asked, ElementsAre(0, 1));
    EXPECT_THAT(*bench.read(ledger, 1), ElementsAre(example_entry(1)));
}

// The next allocation begins at once when it finds the end. So the end counts only in the folder,
// and behind all entries before it.
TEST_F(LedgerBehindTest, TheEndWaitsForTheFolder) {
    bench.create(ledger, example_entry(0));
    ask(example_end(1));
    settle(bench.loop);
    EXPECT_FALSE(created);
    open();
    below->answers(Outcome::won);
    EXPECT_FALSE(created);
    below->answers(Outcome::won);
    ASSERT_TRUE(created);
    EXPECT_EQ(created->outcome, Outcome::won);
    EXPECT_EQ(created->entry, example_end(1));
}

// What is not written is tried again, in its order, and said once. Who waits gets an answer.
TEST_F(LedgerBehindTest, TriesAgain) {
    open();
    bench.create(ledger, example_entry(0));
    below->answers(Outcome::failed);
    EXPECT_TRUE(bench.lines.has("cannot write the ledger: no space left; trying again"));
    EXPECT_TRUE(bench.look(ledger, 1));
    ask(example_end(1));
    below->answers(Outcome::failed);
    ASSERT_TRUE(created);
    EXPECT_EQ(created->outcome, Outcome::failed);
    EXPECT_EQ(created->sentence, "no space left");
    ask(example_end(1));
    below->answers(Outcome::won);
    below->answers(Outcome::won);
    EXPECT_EQ(created->outcome, Outcome::won);
    EXPECT_THAT(below->asked, ElementsAre(0, 0, 0, 1));
}

// A newer allocation has written the next entry. The end loses to it, and the job hears of it.
TEST_F(LedgerBehindTest, ANewerAllocationWins) {
    open();
    bench.create(ledger, example_entry(0));
    below->answers(Outcome::won);
    ask(example_end(1));
    below->loses_to(example_allocation(1, 2));
    ASSERT_TRUE(created);
    EXPECT_EQ(created->outcome, Outcome::lost);
    EXPECT_EQ(created->entry, example_allocation(1, 2));
}

// The file system hung while a newer allocation began, so that one has written the entry 0. The
// next look finds it, and nothing is written behind it.
TEST_F(LedgerBehindTest, OpensBesideANewerAllocation) {
    bench.create(ledger, example_entry(0));
    open();
    below->newest = 2;
    EXPECT_EQ(*bench.look(ledger, 1), 2);
    below->loses_to(example_allocation(0, 2));
    EXPECT_EQ(*bench.look(ledger, 1), 2);
    below->loses_to(example_allocation(0, 2));
    EXPECT_FALSE(bench.lines.has("in memory"));
    for (const LedgerEntry& next : {example_entry(1), example_end(1)}) {
        ask(next);
        below->loses_to(example_allocation(0, 2));
        ASSERT_TRUE(created);
        EXPECT_EQ(created->outcome, Outcome::lost);
        EXPECT_EQ(created->entry, example_allocation(0, 2));
    }
    EXPECT_THAT(below->asked, testing::Each(0));
}

// The same before the first generation, where a stop writes the end as entry 0.
TEST_F(LedgerBehindTest, AnEndAloneLosesToANewerAllocation) {
    open();
    ask(example_end(0));
    below->loses_to(example_allocation(0, 2));
    ASSERT_TRUE(created);
    EXPECT_EQ(created->outcome, Outcome::lost);
    EXPECT_EQ(created->entry, example_allocation(0, 2));
}

TEST_F(LedgerBehindTest, StaysInMemoryWithoutAFolder) {
    bench.create(ledger, example_entry(0));
    ask(example_end(1));
    opened(Error(ErrorCode::unavailable, "ledger folder /x: Read-only file system"));
    ASSERT_TRUE(run_until(bench.loop, [&] { return created.has_value(); }));
    EXPECT_EQ(created->outcome, Outcome::won);
    EXPECT_TRUE(bench.lines.has("Read-only file system; the ledger is in memory instead"));
    EXPECT_EQ(bench.create(ledger, example_entry(2)).outcome, Outcome::won);
    EXPECT_EQ(*bench.look(ledger, 1), -1);
    EXPECT_THAT(*bench.read(ledger, 0),
                ElementsAre(example_entry(0), example_end(1), example_entry(2)));
}

// A run that was killed had the same name: a script calls srun twice with one --rdzv-id.
TEST_F(LedgerBehindTest, StaysInMemoryBesideEntriesOfAnotherRun) {
    LedgerEntry other = example_entry(0, 5);
    other.leader.incarnation.value = 77;
    bench.create(ledger, example_entry(0));
    open();
    ask(example_end(1));
    below->loses_to(other);
    EXPECT_TRUE(bench.lines.has("ledger slow has entries of an earlier run"));
    ASSERT_TRUE(run_until(bench.loop, [&] { return created.has_value(); }));
    EXPECT_EQ(created->outcome, Outcome::won);
    EXPECT_EQ(bench.create(ledger, example_entry(2)).outcome, Outcome::won);
    EXPECT_EQ(ledger.folder(), "") << "it would be removed after a success";
    EXPECT_EQ(*bench.look(ledger, 1), -1);
}

// An earlier try has written the end, and only its answer was lost.
TEST_F(LedgerBehindTest, KnowsItsOwnEntry) {
    open();
    ask(example_end(0));
    LedgerEntry earlier = example_end(0);
    earlier.random += 1;
    below->loses_to(earlier);
    ASSERT_TRUE(created);
    EXPECT_EQ(created->outcome, Outcome::lost);
    EXPECT_EQ(created->entry, earlier);
}

// It may go while the folder is still being opened, or written.
TEST_F(LedgerBehindTest, IsSilentWhenDestroyed) {
    LedgerOpened late;
    bool called = false;
    {
        LedgerBehind gone(
            bench.loop, [&](LedgerOpened done) { late = std::move(done); }, bench.lines.log());
        gone.create(example_end(0), [&](LedgerCreated) { called = true; });
        gone.look(EntryNumber{0}, [&](Result<int>) { called = true; });
    }
    late(std::unique_ptr<Ledger>(std::make_unique<Slow>(bench.loop)));
    settle(bench.loop);
    EXPECT_FALSE(called);
}

// With a real folder: what is written behind is what a requeued job finds.
TEST_F(LedgerBehindTest, IsFoundByTheNextAllocation) {
    const Folder folder;
    const LedgerPlace place = in_folder(folder / "job");
    LedgerBehind real(
        bench.loop,
        [&](LedgerOpened done) {
            open_ledger(bench.shell(), place, LedgerBench::owner(), {}, done);
        },
        bench.lines.log());
    bench.create(real, example_entry(0));
    const auto is_written = [&] { return bench.open(place, LedgerBench::owner("abc123", 1)); };
    EXPECT_TRUE(comes_true([&] {
        const auto next = is_written();
        return next && bench.read(**next, 0)->size() == 1;
    }));
    // The old one sees the new one.
    const auto next = is_written();
    ASSERT_TRUE(next) << next.error();
    bench.create(**next, example_allocation(1, 2));
    EXPECT_EQ(*bench.look(real, 1), 2);
    EXPECT_EQ(bench.create(real, example_entry(1)).outcome, Outcome::lost);
}

// A real folder that opens when the newer allocation has begun.
TEST_F(LedgerBehindTest, Rule26o_FindsTheNewerAllocationInAFolderThatOpensLate) {
    const Folder folder;
    const LedgerPlace place = in_folder(folder / "job");
    LedgerOpened late;
    LedgerBehind real(
        bench.loop, [&](LedgerOpened done) { late = std::move(done); }, bench.lines.log());
    bench.create(real, example_entry(0));
    const auto next = bench.open(place, LedgerBench::owner("abc123", 2));
    bench.create(**next, example_allocation(0, 2));
    open_ledger(bench.shell(), place, LedgerBench::owner(), {}, late);
    EXPECT_TRUE(comes_true([&] {
        const auto newest = bench.look(real, 1);
        return newest && *newest == 2;
    }));
    EXPECT_EQ(bench.create(real, example_entry(1)).entry, example_allocation(0, 2));
    EXPECT_EQ(bench.read(**next, 0)->size(), 1u);
}

}  // namespace
}  // namespace ddprun::rendezvous
