// The seal of a value in a ledger: what it covers, and what is said about values without one.
#include "rendezvous/ledger_format/ledger_seal.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace ddprun::rendezvous {
namespace {

using testing::HasSubstr;

constexpr const char* kSecret = "a secret that all nodes of this job have";
constexpr const char* kKey = "ddprun/lab.7.0/1/entry-000003";
constexpr std::uint64_t kMark = 11;
const std::string kText = R"({"entry": "\n"})";

std::string fault(const Result<std::string>& opened) {
    return opened ? "" : opened.error().sentence();
}

TEST(LedgerSeal, OpensWhatItHasClosed) {
    const LedgerSeal seal(kSecret);
    const std::string stored = seal.close(kKey, kMark, kText);
    EXPECT_NE(stored, kText);
    EXPECT_EQ(*seal.open(kKey, kMark, stored), kText);
    // Another node, with the same secret.
    EXPECT_EQ(*LedgerSeal(kSecret).open(kKey, kMark, stored), kText);
}

// Nothing can be changed, moved to another key, series or job, or kept from an earlier ledger.
TEST(LedgerSeal, CoversTextKeyAndMark) {
    const LedgerSeal seal(kSecret);
    const std::string stored = seal.close(kKey, kMark, kText);
    const std::string wrong = "bears a wrong seal";
    for (const char* key : {"ddprun/lab.7.0/1/entry-000004", "ddprun/lab.7.0/2/entry-000003",
                            "ddprun/lab.8.0/1/entry-000003", "ddprun/lab.7.0/1/ledger"})
        EXPECT_THAT(fault(seal.open(key, kMark, stored)), HasSubstr(wrong)) << key;
    EXPECT_THAT(fault(seal.open(kKey, kMark + 1, stored)), HasSubstr(wrong));
    EXPECT_THAT(fault(LedgerSeal("another secret of the same user").open(kKey, kMark, stored)),
                HasSubstr(wrong));
    for (std::size_t i = 0; i < stored.size(); ++i) {
        std::string changed = stored;
        changed[i] ^= 1;
        EXPECT_NE(fault(seal.open(kKey, kMark, changed)), "") << i;
    }
    for (std::size_t size = 0; size < stored.size(); ++size)
        EXPECT_NE(fault(seal.open(kKey, kMark, stored.substr(0, size))), "") << size;
    EXPECT_NE(fault(seal.open(kKey, kMark, stored + stored)), "");
}

TEST(LedgerSeal, RefusesAValueWithoutASeal) {
    EXPECT_THAT(fault(LedgerSeal(kSecret).open(kKey, kMark, kText)),
                HasSubstr("bears no seal, so somebody without this job's --secret-file"));
}

// A node without the secret must not obey what it cannot check: its values would be refused by the
// others, too.
TEST(LedgerSeal, NeedsTheSecretForASealedValue) {
    const LedgerSeal none;
    EXPECT_EQ(none.close(kKey, kMark, kText), kText);
    EXPECT_EQ(*none.open(kKey, kMark, kText), kText);
    EXPECT_THAT(fault(none.open(kKey, kMark, LedgerSeal(kSecret).close(kKey, kMark, kText))),
                HasSubstr("is sealed with a --secret-file, which this node was not given"));
}

// `etcdctl get --print-value-only KEY | jq .` must go on to work.
TEST(LedgerSeal, IsReadableByPrograms) {
    std::string stored = LedgerSeal(kSecret).close(kKey, kMark, kText);
    stored.insert(stored.find('\n'), ",");
    EXPECT_TRUE(nlohmann::json::accept("[" + stored + "]")) << stored;
}

}  // namespace
}  // namespace ddprun::rendezvous
