// The output of `unmunge`, read without the program: whose credentials count, and what its failures
// mean. Pure; secret_test.cc runs programs.
#include "rendezvous/secret/munge.h"

#include <gmock/gmock.h>

namespace ddprun::rendezvous {
namespace {

using testing::HasSubstr;

// What `unmunge --numeric --keys=STATUS,UID` of version 0.5.15 prints for a credential of this
// user.
std::string printed(const std::string& status, const std::string& uid) {
    return "STATUS:          " + status + "\nUID:             " + uid + "\n\n0123456789abcdef";
}

// All nodes decode one credential, and MUNGE reports it as used before (17) on the same host. It
// may also be expired (15), or come from a clock that is ahead (16). It still counts: the secret in
// it is the proof, not the age of its envelope.
TEST(Munge, TakesThePayloadOfOurOwnCredential) {
    for (const int code : {0, 15, 16, 17})
        EXPECT_EQ(*read_unmunged(printed(std::to_string(code), "1000"), code, 1000),
                  "0123456789abcdef");
}

// Anybody can make a credential that only this user can decode. It counts only if this user has
// made it, or an attacker could choose the secret.
TEST(Munge, RefusesWhatAnotherUserMade) {
    const auto read = read_unmunged(printed("0", "1001"), 0, 1000);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code(), ErrorCode::refused);
    EXPECT_THAT(read.error().sentence(), HasSubstr("not made by user 1000"));
    // The line with the user must stand above the empty line: behind it is the payload, which its
    // maker chooses. Without the line nothing counts, not even for root.
    EXPECT_FALSE(read_unmunged("STATUS: 0\n\nUID: 1000\n\npayload", 0, 1000));
    EXPECT_FALSE(read_unmunged("STATUS: 0\n\npayload", 0, 0));
}

// The user must learn whether munged is missing, its key differs, or the credential is another
// user's.
TEST(Munge, SaysWhyItFailed) {
    EXPECT_THAT(read_unmunged("", 18, 1).error().sentence(), HasSubstr("another user"));
    EXPECT_THAT(read_unmunged("", 14, 1).error().sentence(), HasSubstr("another key"));
    EXPECT_THAT(read_unmunged("", 6, 1).error().sentence(), HasSubstr("munged does not run"));
    EXPECT_THAT(read_unmunged("", 8, 1).error().sentence(), HasSubstr("exited with 8"));
    // -1: a signal ended the program.
    EXPECT_THAT(read_unmunged("", -1, 1).error().sentence(), HasSubstr("exited with -1"));
    // Success without any output.
    EXPECT_FALSE(read_unmunged("", 0, 1));
}

// In a rootless container ddprun has another user id than outside, where munged runs. The map of
// the container says which: first id inside, first id outside, how many.
TEST(Munge, KnowsUsFromOutside) {
    // Without a container, as the kernel prints it: every id is itself.
    EXPECT_EQ(outside_uid("         0          0 4294967295\n", 1000), 1000u);
    EXPECT_EQ(outside_uid("0 1000 1\n1 100000 65536\n", 0), 1000u);
    EXPECT_EQ(outside_uid("0 1000 1\n1 100000 65536\n", 5), 100004u);
    // An id that the map does not have, and no map.
    EXPECT_EQ(outside_uid("0 1000 1\n", 7), 7u);
    EXPECT_EQ(outside_uid("", 7), 7u);
}

}  // namespace
}  // namespace ddprun::rendezvous
