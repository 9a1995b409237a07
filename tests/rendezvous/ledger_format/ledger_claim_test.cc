// The first record of a ledger, and what a starting job does with a ledger that exists already
// (PROTOCOL.md, rule 25). Pure.
#include "rendezvous/ledger_format/ledger_claim.h"

#include <gmock/gmock.h>

#include "tests/rendezvous/examples.h"

namespace ddprun::rendezvous {
namespace {

using testing::HasSubstr;

// A mark above 2^53, which many JSON readers round: it is written as hexadecimal text.
TEST(LedgerClaim, ComesBackAsItWas) {
    const LedgerClaim claim{"abc123", ~0ULL - 6};
    EXPECT_EQ(*claim_from_json(to_json(claim)), claim);
}

// A damaged claim is named, and never read as the claim of another job. A mark of 0 would mean "no
// shared ledger".
TEST(LedgerClaim, SaysWhatIsWrongWithIt) {
    const auto fault = [](const char* text) { return claim_from_json(text).error().sentence(); };
    EXPECT_EQ(fault(R"({"form)"), "is truncated or is not JSON");
    EXPECT_EQ(fault(R"({"format": "x"})"), "has an unknown ledger format");
    EXPECT_THAT(fault(R"({"format": "ddprun ledger 2"})"), HasSubstr("a newer ddprun has"));
    EXPECT_THAT(fault(R"([])"), HasSubstr("lacks"));
    EXPECT_THAT(fault(R"({"format": "ddprun ledger 1", "command_digest": "a"})"),
                HasSubstr("mark"));
    for (const char* mark : {"0", "", "xyz", "12 "})
        EXPECT_THAT(fault((R"({"format": "ddprun ledger 1", "command_digest": "a", "mark": ")" +
                           std::string(mark) + "\"}")
                              .c_str()),
                    HasSubstr("not a hexadecimal number"))
            << mark;
}

// A folder of that name is there already: from this job before a requeue, from a finished one, or
// from another command that may run right now. Two jobs in one ledger would mix their generations.
TEST(LedgerClaim, DecidesWhoseALedgerIs) {
    const LedgerClaim claim{"abc123", 1};
    // Command digest, SLURM_RESTART_COUNT, and 0 for "a job begins". The example entries were
    // written at restart count 1.
    const LedgerOwner ours{"abc123", 1, 0}, requeued{"abc123", 2, 0}, other{"other", 1, 0};
    const std::vector<LedgerEntry> none, running{example_entry(0)},
        ended{example_entry(0), example_end(1)};
    EXPECT_EQ(decide_use(claim, none, false, ours), LedgerUse::ours);
    EXPECT_EQ(decide_use(claim, none, false, other), LedgerUse::foreign);
    EXPECT_EQ(decide_use(claim, running, false, ours), LedgerUse::ours);
    EXPECT_EQ(decide_use(claim, running, false, requeued), LedgerUse::ours);
    EXPECT_EQ(decide_use(claim, running, false, other), LedgerUse::foreign);
    EXPECT_EQ(decide_use(claim, ended, false, ours), LedgerUse::finished);
    EXPECT_EQ(decide_use(claim, ended, false, other), LedgerUse::finished);
    EXPECT_EQ(decide_use(claim, ended, true, ours), LedgerUse::finished)
        << "nothing follows an end";
    EXPECT_EQ(decide_use(claim, ended, false, requeued), LedgerUse::finished);
    // A stop with work left, at restart count 0. After a requeue (count 1) the job goes on in the
    // same ledger.
    std::vector<LedgerEntry> stopped = ended;
    std::get<EndsJob>(stopped.back().act).ending.verdict = Verdict::work_left;
    stopped.back().requeue = 0;
    const LedgerOwner first{"abc123", 0, 0}, second{"abc123", 1, 0};
    EXPECT_EQ(decide_use(claim, stopped, false, second), LedgerUse::ours) << "from the queue";
    EXPECT_EQ(decide_use(claim, stopped, false, first), LedgerUse::finished);
    // Behind the entries one follows that cannot be read. A running job may rely on it, and a
    // requeue does not prove that the earlier allocation has ended.
    EXPECT_EQ(decide_use(claim, none, true, requeued), LedgerUse::unreadable);
    EXPECT_EQ(decide_use(claim, running, true, ours), LedgerUse::unreadable);
    EXPECT_EQ(decide_use(claim, running, true, requeued), LedgerUse::unreadable);
}

}  // namespace
}  // namespace ddprun::rendezvous
