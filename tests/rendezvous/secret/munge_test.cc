#include "rendezvous/secret/munge.h"

#include <gmock/gmock.h>

namespace ddprun::rendezvous {
namespace {

using testing::HasSubstr;

std::string printed(const std::string& status, const std::string& uid) {
    return "STATUS:          " + status + "\nUID:             " + uid + "\n\n0123456789abcdef";
}

// As unmunge 0.5.15 prints it. Used again (17), expired (15) or from a clock ahead (16): the
// payload still counts.
TEST(Munge, TakesThePayloadOfOurOwnCredential) {
    for (const int code : {0, 15, 16, 17})
        EXPECT_EQ(*read_unmunged(printed(std::to_string(code), "1000"), code, 1000),
                  "0123456789abcdef");
}

// Anybody can make a credential that only we can decode; only who made it counts.
TEST(Munge, RefusesWhatAnotherUserMade) {
    const auto read = read_unmunged(printed("0", "1001"), 0, 1000);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code(), ErrorCode::refused);
    EXPECT_THAT(read.error().sentence(), HasSubstr("not made by user 1000"));
    EXPECT_FALSE(read_unmunged("STATUS: 0\n\nUID: 1000\n\npayload", 0, 1000));
    EXPECT_FALSE(read_unmunged("STATUS: 0\n\npayload", 0, 0));
}

TEST(Munge, SaysWhyItFailed) {
    EXPECT_THAT(read_unmunged("", 18, 1).error().sentence(), HasSubstr("another user"));
    EXPECT_THAT(read_unmunged("", 14, 1).error().sentence(), HasSubstr("another key"));
    EXPECT_THAT(read_unmunged("", 6, 1).error().sentence(), HasSubstr("munged does not run"));
    EXPECT_THAT(read_unmunged("", 8, 1).error().sentence(), HasSubstr("exited with 8"));
    EXPECT_THAT(read_unmunged("", -1, 1).error().sentence(), HasSubstr("exited with -1"));
    EXPECT_FALSE(read_unmunged("", 0, 1));
}

// munged runs outside of a rootless container and knows us by the number that we have there.
TEST(Munge, KnowsUsFromOutside) {
    EXPECT_EQ(outside_uid("         0          0 4294967295\n", 1000), 1000u);
    EXPECT_EQ(outside_uid("0 1000 1\n1 100000 65536\n", 0), 1000u);
    EXPECT_EQ(outside_uid("0 1000 1\n1 100000 65536\n", 5), 100004u);
    EXPECT_EQ(outside_uid("0 1000 1\n", 7), 7u);
    EXPECT_EQ(outside_uid("", 7), 7u);
}

}  // namespace
}  // namespace ddprun::rendezvous
