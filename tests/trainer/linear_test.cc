// The program `linear` itself, as a stop finds it.
#include <gmock/gmock.h>

#include "tests/trainer/ranks.h"

namespace ddprun::trainer {
namespace {

using test::Ends;
using test::run_program;
using testing::HasSubstr;

// Rank 1 alone finds the file that says the end is near: all stop after the same step, with a
// snapshot, and go on from there later, to the same bits.
TEST(Linear, StopsOnAllRanksWhenOneIsTold) {
    test::TemporaryFolder folder;
    const std::string snapshots = folder.path() / "s";
    ASSERT_EQ(run_program(3, 0, {DDPRUN_LINEAR, "2"}, folder.path() / "plain"), Ends({0, 0, 0}));
    test::write_all(folder.path() / "stop.json", "{}");
    const std::vector<std::string> told{"/bin/sh",
                                        "-c",
                                        "[ $RANK != 1 ] || export DDPRUN_STOP_FILE=$0; exec \"$@\"",
                                        folder.path() / "stop.json",
                                        DDPRUN_LINEAR,
                                        "2",
                                        snapshots};
    EXPECT_EQ(run_program(3, 0, told, folder.path() / "g0"), Ends({143, 143, 143}));
    EXPECT_EQ(test::read_all(folder.path() / "g0" / "0"), "stopped after step 1\n");
    EXPECT_EQ(run_program(3, 1, {DDPRUN_LINEAR, "2", snapshots}, folder.path() / "g1"),
              Ends({0, 0, 0}));
    const std::string output = test::read_all(folder.path() / "g1" / "0");
    EXPECT_THAT(output, HasSubstr("resumed from snapshot-000000000001-g0 at step 1\n"));
    const std::string plain = test::read_all(folder.path() / "plain" / "0");
    const auto result = plain.find("w[10]=");
    ASSERT_NE(result, std::string::npos) << plain;
    EXPECT_THAT(output, testing::EndsWith(plain.substr(result)));
}

}  // namespace
}  // namespace ddprun::trainer
