// The real code of a ledger in a folder, on a file system that fails in every call, with other hosts
// between any two calls (failing_calls.h). What is promised is in ledger.h: an entry is created at
// most once, whole or not at all, and never changes; a won create is never lost; a look finds what
// had begun before it.
//
// DDPRUN_SEEDS is the number of seeds (default 100).
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <memory>

#include "rendezvous/ledger/ledger.h"
#include "rendezvous/ledger/ledger_folder.h"
#include "rendezvous/ledger_format/ledger_json.h"
#include "tests/rendezvous/examples.h"
#include "tests/rendezvous/ledger/failing_calls.h"
#include "tests/support/loop.h"

namespace ddprun::rendezvous {
namespace {

using Outcome = LedgerCreated::Outcome;

// One leader after the other on one host: what it has read, and its view of the folder.
struct Leader {
    explicit Leader(std::mt19937_64& random) : mount(random) {}
    Mount mount;
    std::int64_t known = 0;  // entries
    int restart = 0;
    bool busy = false;  // one question at a time, as the file thread asks them
};

class Simulated {
  public:
    explicit Simulated(std::uint64_t seed) : random_(seed * 7919 + 1) {
        EXPECT_TRUE(claim_folder(path_, "digest"));
        mark_ = read_claim(path_)->mark;
        for (int i = 0; i < 3; ++i) leaders_.push_back(std::make_unique<Leader>(random_));
        for (const auto& leader : leaders_) leader->mount.fail(below(2) == 0 ? 0.02 : 0.1);
    }

    void run(int questions) {
        for (int i = 0; i < questions && !testing::Test::HasFailure(); ++i) ask(0);
        for (const auto& leader : leaders_) leader->mount.fail(0);
        const FolderEntries all = read_entries(path_, mark_, EntryNumber{0});
        ASSERT_FALSE(all.fault) << *all.fault;
        saw(all.whole);
        EXPECT_EQ(all.whole.size(), stands_.size()) << "an entry that somebody has seen is missing";
        const auto newest = newest_allocation(path_, mark_);
        EXPECT_GE(newest ? *newest : begun_, begun_);
    }
    int won() const { return won_; }

  private:
    std::uint64_t below(std::uint64_t n) { return random_() % n; }

    // Some leader asks something. Within each of its calls another one may, and so on.
    void ask(int depth) {
        Leader& leader = *leaders_[below(leaders_.size())];
        if (leader.busy) return;
        leader.busy = true;
        const auto others = [this, depth] {
            if (depth < 2 && below(20) == 0) ask(depth + 1);
        };
        leader.mount.use(
            [&] {
                const std::uint64_t what = below(5);
                if (what < 2)
                    read(leader);
                else if (what < 4)
                    create(leader);
                else
                    look();
            },
            others);
        leader.busy = false;
    }

    void read(Leader& leader) {
        const FolderEntries found = read_entries(path_, mark_, EntryNumber{0});
        saw(found.whole);
        leader.known = static_cast<std::int64_t>(found.whole.size());
    }

    void create(Leader& leader) {
        LedgerEntry entry;
        entry.number = EntryNumber{leader.known};
        entry.leader = {"leader", Incarnation{random_()}};
        entry.at = {entry.leader, "10.0.0.1", 29400};
        entry.random = random_();
        entry.command_digest = "digest";
        entry.assignment = example_assignment();
        // Sometimes Slurm has started the job again.
        if (below(8) == 0) leader.restart = ++newest_restart_;
        entry.requeue = leader.restart;
        entry.act = BeginsAllocation{below(2) == 0};
        proposed_[entry.random] = to_json(entry);
        const LedgerCreated created = create_entry(path_, mark_, entry);
        if (created.outcome == Outcome::failed) return;
        EXPECT_EQ(created.outcome == Outcome::won, created.entry.random == entry.random);
        saw({created.entry});
        leader.known = created.entry.number.value + 1;
        if (created.outcome != Outcome::won) return;
        ++won_;
        begun_ = std::max(begun_, entry.requeue);
    }

    void look() {
        const int before = begun_;
        const auto newest = newest_allocation(path_, mark_);
        EXPECT_GE(newest ? *newest : before, before) << "a look misses one that had begun";
    }

    // Everybody sees the same under a number, and what was proposed, in one piece.
    void saw(const std::vector<LedgerEntry>& entries) {
        for (std::size_t i = 0; i < entries.size(); ++i) {
            const LedgerEntry& entry = entries[i];
            EXPECT_EQ(entry.number.value, entries.front().number.value + static_cast<int>(i));
            const auto first = stands_.emplace(entry.number.value, entry.random).first;
            EXPECT_EQ(first->second, entry.random) << "entry " << entry.number.value << " twice";
            EXPECT_EQ(proposed_[entry.random], to_json(entry)) << "not as it was proposed";
        }
    }

    const Folder folder_;
    std::string path_ = folder_ / "";
    std::uint64_t mark_ = 0;
    std::mt19937_64 random_;
    std::vector<std::unique_ptr<Leader>> leaders_;
    std::map<std::uint64_t, std::string> proposed_;  // by the random number
    std::map<std::int64_t, std::uint64_t> stands_;   // random numbers that somebody has seen
    int newest_restart_ = 0, begun_ = -1, won_ = 0;
};

TEST(LedgerSimulated, KeepsItsPromisesOnAFailingFileSystem) {
    const char* text = std::getenv("DDPRUN_SEEDS");
    const std::uint64_t seeds = text && *text ? std::strtoull(text, nullptr, 10) : 100;
    int won = 0;
    for (std::uint64_t seed = 1; seed <= seeds && !HasFailure(); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Simulated ledger(seed);
        ledger.run(60);
        won += ledger.won();
    }
    EXPECT_GT(won, static_cast<int>(seeds)) << "most creates fail, so nothing was tried";
}

}  // namespace
}  // namespace ddprun::rendezvous
