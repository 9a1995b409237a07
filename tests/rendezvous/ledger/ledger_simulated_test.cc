// The real code of a ledger in a folder, on a file system that fails in every call, with other
// hosts between any two calls (failing_calls.h). What is promised: ledger_promises.h.
//
// DDPRUN_SEEDS is the number of seeds (default 100).
#include <gtest/gtest.h>

#include <memory>

#include "rendezvous/ledger/ledger_folder.h"
#include "tests/rendezvous/ledger/failing_calls.h"
#include "tests/rendezvous/ledger/ledger_promises.h"
#include "tests/support/loop.h"

namespace ddprun::rendezvous {
namespace {

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
        promises_.stands(all.whole);
        look();
    }
    int won() const { return promises_.won(); }

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
        promises_.saw(found.whole);
        leader.known = static_cast<std::int64_t>(found.whole.size());
    }

    void create(Leader& leader) {
        const LedgerEntry entry = promises_.propose(leader.known, leader.restart);
        const LedgerCreated created = create_entry(path_, mark_, entry);
        promises_.answered(entry, created);
        if (created.outcome != LedgerCreated::Outcome::failed)
            leader.known = created.entry.number.value + 1;
    }

    void look() {
        const int before = promises_.begun();
        LedgerPromises::looked(before, newest_allocation(path_, mark_));
    }

    const Folder folder_;
    std::string path_ = folder_ / "";
    std::uint64_t mark_ = 0;
    std::mt19937_64 random_;
    std::vector<std::unique_ptr<Leader>> leaders_;
    LedgerPromises promises_{random_};
};

TEST(LedgerSimulated, KeepsItsPromisesOnAFailingFileSystem) {
    const std::uint64_t seeds = ledger_seeds(100);
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
