// The example program `linear` itself, as real processes, when a stop reaches it.
#include <gmock/gmock.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include "tests/trainer/ranks.h"

namespace ddprun::trainer {
namespace {

using test::Ends;
using test::run_program;
using testing::HasSubstr;

// Rank 1 alone finds the file that asks for a stop, as when one node hears it first. If rank 1
// stopped alone, the others would hang in the next all-reduce. So all stop after the same step,
// with a snapshot, and later go on from there to the same bits as an undisturbed run.
TEST(Linear, StopsOnAllRanksWhenOneIsTold) {
    test::TemporaryFolder folder;
    const std::string snapshots = folder.path() / "s";
    ASSERT_EQ(run_program(3, 0, {DDPRUN_LINEAR, "2"}, folder.path() / "plain"), Ends({0, 0, 0}));
    test::write_all(folder.path() / "stop.json", "{}");
    // A shell around the program: only rank 1 gets the variable that names the file.
    const std::vector<std::string> told{"/bin/sh",
                                        "-c",
                                        "[ $RANK != 1 ] || export DDPRUN_STOP_FILE=$0; exec \"$@\"",
                                        folder.path() / "stop.json",
                                        DDPRUN_LINEAR,
                                        "2",
                                        snapshots};
    // 143 is 128 + SIGTERM: stopped, with work left.
    EXPECT_EQ(run_program(3, 0, told, folder.path() / "g0"), Ends({143, 143, 143}));
    EXPECT_EQ(test::read_all(folder.path() / "g0" / "0"), "stopped after step 1\n");
    EXPECT_EQ(run_program(3, 1, {DDPRUN_LINEAR, "2", snapshots}, folder.path() / "g1"),
              Ends({0, 0, 0}));
    const std::string output = test::read_all(folder.path() / "g1" / "0");
    EXPECT_THAT(output, HasSubstr("resumed from snapshot-000000000001-g0 at step 1\n"));
    EXPECT_THAT(output, HasSubstr(" (since step 1) "));
    const std::string plain = test::read_all(folder.path() / "plain" / "0");
    const auto result = plain.find("w[10]=");
    ASSERT_NE(result, std::string::npos) << plain;
    EXPECT_THAT(output, testing::EndsWith(plain.substr(result)));
}

// Rank 1 alone finds the file that asks for a snapshot. All begin one, and the file is removed, so
// that the launcher knows that the request is heard. (Without that, `ddpctl snapshot` waits.)
TEST(Linear, SavesASnapshotWhenOneRankIsAsked) {
    test::TemporaryFolder folder;
    const auto asked = folder.path() / "snapshot.json";
    test::write_all(asked, R"({"number":1000001})");
    const std::vector<std::string> told{
        "/bin/sh",
        "-c",
        "[ $RANK != 1 ] || export DDPRUN_SNAPSHOT_FILE=$0; exec \"$@\"",
        asked,
        DDPRUN_LINEAR,
        "1",
        folder.path() / "s"};
    EXPECT_EQ(run_program(3, 0, told, folder.path() / "g0"), Ends({0, 0, 0}));
    EXPECT_FALSE(std::filesystem::exists(asked));
}

// Nothing can be saved: the training ends with its result all the same, and says why.
TEST(Linear, EndsWithItsResultThoughNothingCanBeSaved) {
    if (geteuid() != 0) GTEST_SKIP() << "mounting needs root";
    test::TemporaryFolder folder;
    const std::string disk = folder.path() / "s";
    std::filesystem::create_directory(disk);
    if (unshare(CLONE_NEWNS) || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) ||
        mount("tmpfs", disk.c_str(), "tmpfs", MS_RDONLY, "size=1m"))
        GTEST_SKIP() << "mounting is not allowed here";
    EXPECT_EQ(run_program(2, 0, {DDPRUN_LINEAR, "2", disk}, folder.path() / "g0"), Ends({0, 0}));
    const std::string output = test::read_all(folder.path() / "g0" / "0");
    EXPECT_THAT(output, HasSubstr("warning: snapshot snapshot-000000000008-g0 was not saved: "));
    EXPECT_THAT(output, HasSubstr("Read-only file system; the training goes on"));
    EXPECT_THAT(output, HasSubstr("w[10]="));
    (void)umount2(disk.c_str(), MNT_DETACH);
}

// A word that looks like an option was once taken for 0 epochs: the job "succeeded" at once.
TEST(Linear, RefusesWhatItDoesNotKnow) {
    test::TemporaryFolder folder;
    using Words = std::vector<std::string>;
    for (const Words& words :
         {Words{"--snapshot-dir", "s"}, Words{"five"}, Words{"5x"}, Words{"-1"}, Words{""},
          Words{"1", "--resume"}, Words{"1", "s", "m", "more"}}) {
        Words command{DDPRUN_LINEAR};
        command.insert(command.end(), words.begin(), words.end());
        EXPECT_EQ(run_program(1, 0, command, folder.path() / "g0"), Ends({2})) << words.front();
        EXPECT_THAT(test::read_all(folder.path() / "g0" / "0"),
                    testing::StartsWith("usage: linear"));
    }
}

}  // namespace
}  // namespace ddprun::trainer
