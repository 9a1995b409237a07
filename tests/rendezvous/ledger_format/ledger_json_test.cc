// Ledger entries as JSON text. Pure. The files outlive the job, and people read them; a damaged one
// must never be taken for an entry.
#include "rendezvous/ledger_format/ledger_json.h"

#include <gmock/gmock.h>

#include "tests/rendezvous/examples.h"

namespace ddprun::rendezvous {
namespace {

using testing::HasSubstr;

// Generation, takeover and end come back unchanged. Names and output of workers may be no UTF-8,
// and a 64-bit number must not be rounded, as many JSON readers do.
TEST(LedgerJson, CarriesEntriesUnchanged) {
    LedgerEntry takeover = example_entry();
    takeover.act = TakesOver{};
    // Not UTF-8: the second byte does not continue the first.
    takeover.assignment.cause = "bytes \xc3\x28";
    LedgerEntry plain_end = example_end(3);
    plain_end.act = EndsJob{};
    LedgerEntry hang = example_end(8);
    std::get<EndsJob>(hang.act).ending.first_failure = example_hang();
    LedgerEntry first = example_allocation(0, 0);
    first.act = BeginsAllocation{false};
    first.assignment = {};
    for (const LedgerEntry& entry : {example_entry(), takeover, example_end(7), plain_end, hang,
                                     example_allocation(9, 2), first}) {
        const auto back = from_json(to_json(entry));
        ASSERT_TRUE(back) << back.error();
        EXPECT_EQ(*back, entry);
    }
}

// A full disk or a crash leaves half of a file.
TEST(LedgerJson, KnowsEveryCut) {
    const std::string text = to_json(example_end(7));
    for (std::size_t size = 0; size + 1 < text.size(); ++size)
        EXPECT_FALSE(from_json(text.substr(0, size))) << size;
}

// One digit of a port has changed. It is still JSON, so only the checksum shows it.
TEST(LedgerJson, KnowsAnAlteredEntry) {
    std::string text = to_json(example_entry());
    text.replace(text.find("29400"), 5, "29401");
    EXPECT_THAT(from_json(text).error().sentence(), HasSubstr("checksum"));
    EXPECT_THAT(from_json("{}").error().code(), ErrorCode::malformed);
    EXPECT_THAT(from_json("[1]").error().code(), ErrorCode::malformed);
    EXPECT_THAT(from_json(R"({"format":"ddprun ledger entry 2"})").error().sentence(),
                HasSubstr("has an unknown ledger entry format: a newer ddprun has written it; "
                          "start the job with that version again"));
    EXPECT_EQ(from_json(R"({"format":"notes"})").error().sentence(),
              "has an unknown ledger entry format");
}

// The checksum is right but a value is impossible, as from a later version. The sentence names the
// place in the file.
TEST(LedgerJson, ChecksRanges) {
    LedgerEntry entry = example_entry();
    entry.assignment.members[1].offer.slots = 0;
    EXPECT_EQ(from_json(to_json(entry)).error().sentence(),
              "entry.assignment.members[1].offer.slots: 0 is not 1..4096");
    entry = example_entry();
    entry.restart.times[3].took = Duration{-1};
    EXPECT_THAT(from_json(to_json(entry)).error().sentence(),
                HasSubstr("entry.restart.gone.ns: -1 is not 0.."));
    entry = example_entry();
    entry.restart.totals.took[4] = Duration{-1};
    EXPECT_THAT(from_json(to_json(entry)).error().sentence(),
                HasSubstr("entry.restart.sums_ns.met: -1 is not 0.."));
    entry = example_entry();
    entry.blame.causes[1].generation = Generation{-2};
    EXPECT_THAT(from_json(to_json(entry)).error().sentence(),
                HasSubstr("entry.blame.causes[1].generation: -2 is not 0.."));
}

// MIN and MAX of a later command line might not fit one of them alone.
TEST(LedgerJson, RefusesLimitsThatDoNotFit) {
    LedgerEntry entry = example_entry();
    entry.limits = {.min_nodes = 2, .max_nodes = {}, .max_restarts = {}};
    EXPECT_THAT(from_json(to_json(entry)).error().sentence(),
                HasSubstr("entry.limits: has only one of min_nodes and max_nodes"));
    entry.limits = {.min_nodes = 3, .max_nodes = 2, .max_restarts = {}};
    EXPECT_THAT(from_json(to_json(entry)).error().sentence(),
                HasSubstr("entry.limits.max_nodes: 2 is not 3..100000"));
    entry.limits = {.min_nodes = {}, .max_nodes = {}, .max_restarts = -1};
    EXPECT_THAT(from_json(to_json(entry)).error().sentence(),
                HasSubstr("entry.limits.max_restarts: -1 is not 0.."));
}

// Entries of earlier versions have no restart times and no blame. A job must go on after such an
// entry.
TEST(LedgerJson, NeedsNoRestartAndNoBlame) {
    LedgerEntry entry = example_entry();
    entry.restart = {};
    entry.blame = {};
    entry.limits = {};
    EXPECT_EQ(to_json(entry).find("restart\""), std::string::npos);
    EXPECT_EQ(to_json(entry).find("limits"), std::string::npos);
    EXPECT_EQ(*from_json(to_json(entry)), entry);
}

}  // namespace
}  // namespace ddprun::rendezvous
