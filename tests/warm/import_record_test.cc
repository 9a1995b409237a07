// What is read of the workers' records of imports, and what is skipped.
#include "warm/import_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ddprun::agent::warm {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(ImportRecord, HasTheModulesInTheirOrder) {
    EXPECT_THAT(imports_in("numpy\t7b30\ntorch\t7b30\ntorch._dynamo\t7b\n"),
                ElementsAre("numpy", "torch", "torch._dynamo"));
}

TEST(ImportRecord, SkipsALineThatIsNotComplete) {
    EXPECT_THAT(imports_in("numpy\t7b30\ntorch\t7b"), ElementsAre("numpy"));
    EXPECT_THAT(imports_in(""), IsEmpty());
}

TEST(ImportRecord, SkipsWhatAWorkerMayHaveWrittenInItsPlace) {
    using namespace std::string_literals;
    EXPECT_THAT(imports_in("\t7b\nno tab\nnul\0\t7b\ntorch\t7b\n"s), ElementsAre("torch"));
}

TEST(ImportRecord, GrowsByAnImportThatFewerHad) {
    EXPECT_TRUE(has_more({"torch\t1\n"}, {}));
    EXPECT_TRUE(has_more({"torch\t1\n", "torch\t1\nnumpy\t2\n"}, {"torch\t1\n"}));
    // Rank 0 has imported it later than rank 1.
    EXPECT_TRUE(has_more({"torch\t1\nnumpy\t2\n", "torch\t1\nnumpy\t2\n"},
                         {"torch\t1\n", "torch\t1\nnumpy\t2\n"}));
    // The state is another one in each generation.
    EXPECT_FALSE(has_more({"torch\t2\n"}, {"numpy\t1\ntorch\t1\n"}));
    EXPECT_FALSE(has_more({}, {"torch\t1\n"}));
}

}  // namespace
}  // namespace ddprun::agent::warm
