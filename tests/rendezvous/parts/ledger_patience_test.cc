// How long a leader waits for its ledger (PROTOCOL.md, rule 11). Pure. The lease is 10 s. A file
// system may hang for as long as it likes, so each question has a limit.
#include "rendezvous/parts/ledger_patience.h"

#include <gmock/gmock.h>

#include "tests/support/builders.h"

namespace ddprun::rendezvous {
namespace {

using namespace ddprun::test;

constexpr Duration kLedgerLease = std::chrono::seconds{10};

// Two questions are open. The older one says how long the ledger has been silent.
TEST(LedgerPatience, CountsFromTheFirstOpenQuestion) {
    LedgerPatience ledger;
    EXPECT_FALSE(ledger.waits());
    EXPECT_EQ(ledger.silent_since(), kNever);
    ledger.asks(at(1));
    ledger.asks(at(4));
    EXPECT_TRUE(ledger.waits());
    EXPECT_EQ(ledger.asked_since(), at(1));
    ledger.was_read(at(5));
    EXPECT_FALSE(ledger.waits());
    EXPECT_EQ(ledger.silent_since(), kNever);
}

// The ledger is asked again and again. The log must not repeat the same reason each time. After a
// success the reason is news again.
TEST(LedgerPatience, SaysASentenceOnce) {
    LedgerPatience ledger;
    EXPECT_TRUE(ledger.was_not_read("no such folder"));
    EXPECT_FALSE(ledger.was_not_read("no such folder"));
    EXPECT_TRUE(ledger.was_not_read("permission denied"));
    ledger.was_read(at(1));
    EXPECT_TRUE(ledger.was_not_read("permission denied")) << "it had worked in between";
}

// The disk is full. The answer comes, but nothing is written, so for the job the ledger is silent.
// The create is tried again after 0.1 L = 1 s.
TEST(LedgerPatience, ACreateThatFailsIsTriedAgainAndCountsAsSilence) {
    LedgerPatience ledger;
    ledger.asks(at(1));
    ledger.was_answered();
    EXPECT_TRUE(ledger.was_not_created(at(2), "disk full", kLedgerLease));
    EXPECT_EQ(ledger.create_again_at(), at(3));
    EXPECT_EQ(ledger.silent_since(), at(2));
    ledger.asks(at(3));
    ledger.was_answered();
    EXPECT_FALSE(ledger.was_not_created(at(4), "disk full", kLedgerLease));
    EXPECT_EQ(ledger.silent_since(), at(2)) << "of the first failure";
    // A read that works does not end it: the entry is still not written.
    ledger.was_read(at(5));
    EXPECT_EQ(ledger.silent_since(), at(2));
    EXPECT_EQ(ledger.why(), "disk full");
    ledger.was_created();
    EXPECT_EQ(ledger.silent_since(), kNever);
}

// All nodes wait for the end. After 2 L = 20 s of failures they get it without an entry.
TEST(LedgerPatience, Rule24e_AnEndIsNotWorthRecordingAfterTwoLeases) {
    LedgerPatience ledger;
    EXPECT_FALSE(ledger.end_is_unrecorded(at(100), kLedgerLease)) << "nothing has failed";
    ledger.was_not_created(at(2), "disk full", kLedgerLease);
    EXPECT_FALSE(ledger.end_is_unrecorded(at(22), kLedgerLease));
    EXPECT_TRUE(ledger.end_is_unrecorded(at(22.1), kLedgerLease));
}

// A read may show an old state of a network file system. So a leader that cannot propose reads
// again each lease.
TEST(LedgerPatience, LooksUpAgainEachLease) {
    LedgerPatience ledger;
    ledger.was_read(at(1));
    EXPECT_FALSE(ledger.reads_again(at(10.9), kLedgerLease));
    EXPECT_EQ(ledger.reads_again_at(kLedgerLease), at(11));
    EXPECT_TRUE(ledger.reads_again(at(11), kLedgerLease));
    EXPECT_FALSE(ledger.reads_again(at(12), kLedgerLease)) << "it has just asked";
}

// The leader yields at 16 because of its ledger and leads again at 50. For the job it is one
// silence since 1, and the join timeout counts from there. A silence at 76, six leases after it
// yielded, is another one.
TEST(LedgerPatience, GoesOnThroughALeaderThatYieldsAndLeadsAgain) {
    LedgerPatience ledger;
    ledger.asks(at(1));
    EXPECT_EQ(ledger.unanswered_since(), at(1));
    ledger.yields(at(16));
    const LedgerPatience dormant = ledger.after_yield();
    EXPECT_FALSE(dormant.waits());
    LedgerPatience soon = dormant.in_next_activation(at(50), kLedgerLease);
    soon.asks(at(50));
    EXPECT_EQ(soon.unanswered_since(), at(1));
    LedgerPatience late = dormant.in_next_activation(at(16 + 60), kLedgerLease);
    late.asks(at(76));
    EXPECT_EQ(late.unanswered_since(), at(76)) << "six leases later it is another silence";
}

}  // namespace
}  // namespace ddprun::rendezvous
