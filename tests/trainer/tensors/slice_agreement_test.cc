// What rank 0 remembers of all ranks' slices from one snapshot to the next.
#include "trainer/tensors/slice_agreement.h"

#include <gmock/gmock.h>

#include <map>

namespace ddprun::trainer {
namespace {

// Lists are fetched when one has changed, and not otherwise.
TEST(SliceAgreement, FetchesListsOnlyWhenOneHasChanged) {
    const std::map<std::string, std::string> texts{{"one", R"([["w","F32",[4],[0],[2]]])"},
                                                   {"two", R"([["w","F32",[4],[2],[2]]])"},
                                                   {"all", R"([["w","F32",[4],[0],[4]]])"}};
    int fetched = 0;
    const auto fetch = [&](const std::string& name) {
        ++fetched;
        return Result<std::string>(texts.at(name));
    };
    SliceAgreement lists;
    EXPECT_TRUE(lists.agree({"one", "", "two"}, {}, fetch));
    EXPECT_EQ(lists.written().size(), 3u);
    EXPECT_TRUE(lists.agree({"one", "", "two"}, {}, fetch));
    EXPECT_EQ(fetched, 2);
    EXPECT_FALSE(lists.agree({"one", "", "two"}, {"w"}, fetch));
    EXPECT_FALSE(lists.agree({"one", "", "all"}, {}, fetch));
    // What was refused has not replaced what was good.
    EXPECT_EQ(lists.written()[2][0].part.shape, Extents{2});
    EXPECT_TRUE(lists.agree({"", "", "all"}, {}, fetch));
    EXPECT_TRUE(lists.written()[0].empty());
}

// Replicas are written once, also where a rank then writes nothing of what it brings.
TEST(SliceAgreement, ChoosesWhoWrites) {
    SliceAgreement lists;
    const auto fetch = [](const std::string&) {
        return Result<std::string>(R"([["w","F32",[4],[0],[4]]])");
    };
    ASSERT_TRUE(lists.agree({"", "all", "all"}, {}, fetch));
    EXPECT_THAT(lists.written(),
                testing::ElementsAre(testing::IsEmpty(), testing::SizeIs(1), testing::IsEmpty()));
    EXPECT_FALSE(lists.brings(0));
    EXPECT_TRUE(lists.brings(2));
}

}  // namespace
}  // namespace ddprun::trainer
