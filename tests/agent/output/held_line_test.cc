// A writer's turn at a console, without any console: whose turn it is, and when the others have
// waited long enough. At most 10 bytes may wait behind the line, and it may stand still for 5 s.
#include "agent/output/held_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ddprun::agent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const int kMine = 0, kYours = 0;

Time at(int second) { return Time{std::chrono::seconds{second}}; }

HeldLine line() { return {10, std::chrono::seconds{5}}; }

// Lines of two writers that are both too long would tear each other, so the second one is refused.
// It may try again when the first has ended.
TEST(HeldLine, HasOneHolder) {
    HeldLine held = line();
    EXPECT_FALSE(held.is_held());
    EXPECT_TRUE(held.begin(&kMine, at(0)));
    EXPECT_FALSE(held.begin(&kYours, at(0)));
    EXPECT_FALSE(held.begin(&kMine, at(0)));
    EXPECT_TRUE(held.is_held_by(&kMine));
    EXPECT_FALSE(held.is_held_by(&kYours));
    EXPECT_THAT(held.end(), IsEmpty());
    EXPECT_FALSE(held.is_held());
    EXPECT_TRUE(held.begin(&kYours, at(0)));
}

// What the others write comes out in its order, and does not count for the next turn.
TEST(HeldLine, KeepsWhatTheOthersWrite) {
    HeldLine held = line();
    ASSERT_TRUE(held.begin(&kMine, at(0)));
    EXPECT_FALSE(held.put_behind("one\n"));
    EXPECT_FALSE(held.put_behind("two\n"));
    EXPECT_EQ(held.bytes_behind(), 8U);
    EXPECT_THAT(held.end(), ElementsAre("one\n", "two\n"));
    EXPECT_EQ(held.bytes_behind(), 0U);
    ASSERT_TRUE(held.begin(&kMine, at(9)));
    EXPECT_FALSE(held.stands_still(at(99)));
    EXPECT_FALSE(held.put_behind("three\n"));
    EXPECT_THAT(held.end(), ElementsAre("three\n"));
}

// The tenth byte is the one too many: the line is cut before memory runs full.
TEST(HeldLine, IsCutWhenTooMuchWaits) {
    HeldLine held = line();
    ASSERT_TRUE(held.begin(&kMine, at(0)));
    EXPECT_FALSE(held.put_behind("123456789"));
    EXPECT_TRUE(held.put_behind("\n"));
}

// The holder may think for hours in the middle of its line, as long as nobody waits. If somebody
// does, 5 s after its last word are enough; each word starts them anew.
TEST(HeldLine, IsCutWhenItStandsStillAndOthersWait) {
    HeldLine held = line();
    ASSERT_TRUE(held.begin(&kMine, at(0)));
    EXPECT_FALSE(held.stands_still(at(3600)));
    EXPECT_FALSE(held.put_behind("other\n"));
    EXPECT_TRUE(held.stands_still(at(3600)));
    held.grew(at(3600));
    EXPECT_FALSE(held.stands_still(at(3604)));
    EXPECT_TRUE(held.stands_still(at(3605)));
}

}  // namespace
}  // namespace ddprun::agent
