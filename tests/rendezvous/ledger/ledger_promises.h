// What every ledger promises (ledger.h), checked over all that several leaders propose and see: an
// entry is created at most once, whole or not at all, and never changes; a won create is never
// lost; a look finds what had begun before it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "rendezvous/ledger/ledger.h"
#include "rendezvous/ledger_format/ledger_json.h"
#include "tests/rendezvous/examples.h"

namespace ddprun::rendezvous {

class LedgerPromises {
  public:
    explicit LedgerPromises(std::mt19937_64& random) : random_(random) {}

    // The next entry of a leader that knows so many. `restart` is the leader's restart count, which
    // grows now and then, since Slurm starts the job again.
    LedgerEntry propose(std::int64_t known, int& restart) {
        LedgerEntry entry;
        entry.number = EntryNumber{known};
        entry.leader = {"leader", Incarnation{random_()}};
        entry.at = {entry.leader, "10.0.0.1", 29400};
        entry.random = random_();
        entry.command_digest = "digest";
        entry.assignment = example_assignment();
        if (random_() % 8 == 0) restart = ++newest_restart_;
        entry.requeue = restart;
        entry.act = BeginsAllocation{random_() % 2 == 0};
        proposed_[entry.random] = to_json(entry);
        return entry;
    }

    void answered(const LedgerEntry& wanted, const LedgerCreated& created) {
        if (created.outcome == LedgerCreated::Outcome::failed) return;
        const bool won = created.outcome == LedgerCreated::Outcome::won;
        EXPECT_EQ(won, created.entry.random == wanted.random);
        saw({created.entry});
        if (!won) return;
        ++won_;
        begun_ = std::max(begun_, wanted.requeue);
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

    // `before` is begun() at the question.
    static void looked(int before, const Result<int>& newest) {
        EXPECT_GE(newest ? *newest : before, before) << "a look misses one that had begun";
    }

    // Nothing that anybody has seen is missing at the end.
    void stands(const std::vector<LedgerEntry>& all) {
        saw(all);
        EXPECT_EQ(all.size(), stands_.size()) << "an entry that somebody has seen is missing";
    }

    int begun() const { return begun_; }  // the newest restart count of a won create; -1: none
    int won() const { return won_; }

  private:
    std::mt19937_64& random_;
    std::map<std::uint64_t, std::string> proposed_;  // by the random number
    std::map<std::int64_t, std::uint64_t> stands_;   // random numbers that somebody has seen
    int newest_restart_ = 0, begun_ = -1, won_ = 0;
};

// DDPRUN_SEEDS, the number of seeds that a simulated ledger is tried with.
inline std::uint64_t ledger_seeds(std::uint64_t usual) {
    const char* text = std::getenv("DDPRUN_SEEDS");
    return text && *text ? std::strtoull(text, nullptr, 10) : usual;
}

}  // namespace ddprun::rendezvous
