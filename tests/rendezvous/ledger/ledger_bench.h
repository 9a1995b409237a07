// What the tests of all kinds of ledgers share: calls that wait for their answers, and the promises
// of ledger.h that every kind must keep.
#pragma once

#include <gmock/gmock.h>

#include <optional>

#include "rendezvous/ledger/ledger_members.h"
#include "rendezvous/ledger/ledger_open.h"
#include "tests/rendezvous/examples.h"
#include "tests/support/loop.h"

namespace ddprun::rendezvous {

using Outcome = LedgerCreated::Outcome;
using OpenedLedger = Result<std::unique_ptr<Ledger>>;

// A loop, its file thread and the log lines, as a node has them. `loop` runs only inside these
// calls.
struct LedgerBench {
    asio::io_context loop;
    FileThread files{loop};
    Lines lines;
    LedgerAccessPointer access;

    // The job that opens a ledger. "abc123" is the command of example_entry(), so its entries are
    // those of this owner. That entry is of requeue 1.
    static LedgerOwner owner(const std::string& digest = "abc123", int requeue = 0,
                             std::uint64_t mark = 0) {
        return {digest, requeue, mark};
    }
    LedgerShell shell() { return {loop, files, lines.log(), access}; }

    // Every answer must come later, from the loop: a caller that is entered again from within its
    // own call would break the service.
    OpenedLedger open(const LedgerPlace& place, const LedgerOwner& who = owner(),
                      const LedgerLimits& limits = {}) {
        std::optional<OpenedLedger> got;
        open_ledger(shell(), place, who, limits,
                    [&](OpenedLedger opened) { got.emplace(std::move(opened)); });
        EXPECT_FALSE(got) << "never from within the call";
        EXPECT_TRUE(run_until(loop, [&] { return got.has_value(); }));
        return std::move(*got);
    }
    OpenedLedger open(const std::string& folder, const LedgerOwner& who = owner(),
                      const LedgerLimits& limits = {}) {
        return open(LedgerPlace{LedgerPlace::Kind::directory, folder, {}}, who, limits);
    }
    // The names of the nodes that a latecomer can call.
    std::vector<std::string> members(const LedgerPlace& place, const LedgerOwner& who = owner()) {
        std::optional<std::vector<Peer>> got;
        find_members(shell(), place, who, {}, [&](std::vector<Peer> found) { got = found; });
        EXPECT_FALSE(got) << "never from within the call";
        EXPECT_TRUE(run_until(loop, [&] { return got.has_value(); }));
        std::vector<std::string> all;
        for (const Peer& peer : *got) all.push_back(peer.node.name);
        return all;
    }
    LedgerCreated create(Ledger& ledger, const LedgerEntry& entry) {
        std::optional<LedgerCreated> got;
        ledger.create(entry, [&](LedgerCreated created) { got = std::move(created); });
        EXPECT_FALSE(got) << "never from within the call";
        EXPECT_TRUE(run_until(loop, [&] { return got.has_value(); }));
        return std::move(*got);
    }
    Result<int> look(Ledger& ledger, std::int64_t from) {
        std::optional<Result<int>> got;
        ledger.look(EntryNumber{from}, [&](Result<int> newest) { got.emplace(std::move(newest)); });
        EXPECT_FALSE(got) << "never from within the call";
        EXPECT_TRUE(run_until(loop, [&] { return got.has_value(); }));
        return std::move(*got);
    }
    Result<std::vector<LedgerEntry>> read(Ledger& ledger, std::int64_t from) {
        std::optional<Result<std::vector<LedgerEntry>>> got;
        ledger.read(EntryNumber{from}, [&](auto entries) { got.emplace(std::move(entries)); });
        EXPECT_TRUE(run_until(loop, [&] { return got.has_value(); }));
        return std::move(*got);
    }
};

// Asks again and again until the answer is yes, 20 s at most. For faults after which a ledger needs
// a while: a hung file system that continues, an etcd that starts.
inline bool comes_true(const std::function<bool()>& question) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{20};
    while (!question())
        if (std::chrono::steady_clock::now() > deadline) return false;
    return true;
}

// A node comes late, and the host of the endpoint is gone. It knows its command only, no mark. It
// must find the members of the running job, and none of a job that has not begun or has ended.
inline void tells_who_comes_late(LedgerBench& bench, const LedgerPlace& place) {
    const auto foreign = bench.open(place, LedgerBench::owner("foreign"));
    EXPECT_THAT(bench.members(place), testing::IsEmpty()) << "no ledger of the command";
    const auto ledger = bench.open(place);
    EXPECT_THAT(bench.members(place), testing::IsEmpty()) << "no generation yet";
    const LedgerEntry entry = example_entry(0);
    bench.create(**ledger, entry);
    // The leader comes first: it can answer at once.
    std::vector<std::string> names{entry.at.node.name};
    for (const Member& member : entry.assignment.members)
        if (member.node != entry.at.node) names.push_back(member.node.name);
    const LedgerOwner same = LedgerBench::owner("abc123", 1);  // as example_entry() has it
    EXPECT_THAT(bench.members(place, same), testing::ElementsAreArray(names));
    EXPECT_THAT(bench.members(place, LedgerBench::owner("abc123", 2)), testing::IsEmpty())
        << "they would refuse a node of a newer allocation";
    bench.create(**ledger, example_allocation(1, 2));
    EXPECT_THAT(bench.members(place, LedgerBench::owner("abc123", 2)),
                testing::ElementsAre(entry.at.node.name))
        << "the leader alone: the members are those of the earlier one";
    bench.create(**ledger, example_end(2));
    EXPECT_THAT(bench.members(place, same), testing::IsEmpty()) << "it has ended";
}

// An entry is created once and never changes. A writer that repeats its own create has won: its
// first answer may have been lost. Another writer has lost and gets what stands there. All rules of
// the protocol build on this.
inline void keeps_the_promises(LedgerBench& bench, Ledger& ledger) {
    EXPECT_TRUE(bench.read(ledger, 0)->empty());
    EXPECT_EQ(bench.create(ledger, example_entry(0, 1)).outcome, Outcome::won);
    EXPECT_EQ(bench.create(ledger, example_entry(0, 1)).outcome, Outcome::won);
    const LedgerCreated lost = bench.create(ledger, example_entry(0, 2));
    EXPECT_EQ(lost.outcome, Outcome::lost);
    EXPECT_EQ(lost.entry, example_entry(0, 1));
    EXPECT_EQ(bench.create(ledger, example_end(1, 3)).outcome, Outcome::won);
    // From before the first entry, in the middle, and behind the last one.
    EXPECT_THAT(*bench.read(ledger, -1),
                testing::ElementsAre(example_entry(0, 1), example_end(1, 3)));
    EXPECT_THAT(*bench.read(ledger, 1), testing::ElementsAre(example_end(1, 3)));
    EXPECT_TRUE(bench.read(ledger, 2)->empty());
}

// A leader looks whether a newer allocation has begun, from the entry after its own on.
inline void shows_newer_allocations(LedgerBench& bench, Ledger& ledger) {
    EXPECT_EQ(*bench.look(ledger, 0), -1);
    LedgerEntry first = example_entry(0);
    first.requeue = 0;
    bench.create(ledger, first);
    EXPECT_EQ(*bench.look(ledger, 1), -1);
    bench.create(ledger, example_allocation(1, 2));
    EXPECT_EQ(*bench.look(ledger, 1), 2);
    // Another one, whose answer was lost: its writer repeats it with another random number.
    bench.create(ledger, example_allocation(2, 4));
    LedgerEntry repeated = example_allocation(2, 4);
    repeated.random += 1;
    EXPECT_EQ(bench.create(ledger, repeated).entry, example_allocation(2, 4));
    EXPECT_EQ(*bench.look(ledger, 1), 4);
    // After the end of the earlier allocation the next one begins with a generation.
    LedgerEntry generation = example_entry(3);
    generation.requeue = 5;
    bench.create(ledger, example_end(3, 3));
    generation.number = EntryNumber{4};
    bench.create(ledger, generation);
    EXPECT_EQ(*bench.look(ledger, 1), 5);
}

}  // namespace ddprun::rendezvous
