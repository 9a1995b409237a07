// Whom a ledger folder believes: only files of our own user count. On clusters a project folder
// often has the setgid bit and users have umask 002, so whoever is in the group may write there. A
// planted entry could end the job with success, or let two generations train.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tests/rendezvous/ledger/ledger_bench.h"

namespace ddprun::rendezvous {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr uid_t kSomebody = 12345;

unsigned mode_of(const std::string& path) {
    struct stat status {};
    EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
    return status.st_mode & 0777;
}

// The usual project folder of a group, and a user whose files the group may write.
struct ProjectFolder {
    ProjectFolder() { ::chmod((folder / "").c_str(), 02775); }
    ~ProjectFolder() { ::umask(before); }
    Folder folder;
    mode_t before = ::umask(002);
};

// Every folder that is made, and every file in it, is closed to the group.
TEST(LedgerOwner, MakesFoldersThatNobodyElseCanEnter) {
    LedgerBench bench;
    const ProjectFolder project;
    const std::string job = project.folder / ".ddprun/lab.7.0";
    auto ledger = bench.open(job);
    ASSERT_TRUE(ledger) << ledger.error();
    ASSERT_EQ(bench.create(**ledger, example_entry(0)).outcome, Outcome::won);
    EXPECT_EQ(mode_of(project.folder / ".ddprun"), 0700u);
    EXPECT_EQ(mode_of(job), 0700u);
    EXPECT_EQ(mode_of(job + "/entry-000000.json"), 0600u);
    EXPECT_EQ(mode_of(job + "/ledger.json"), 0600u);
}

// A folder that an older ddprun made with that umask: the group loses its permission.
TEST(LedgerOwner, ClosesAFolderOfOurOwnThatOthersMayWrite) {
    LedgerBench bench;
    const ProjectFolder project;
    const std::string job = project.folder / "job";
    ASSERT_EQ(::mkdir(job.c_str(), 0777), 0);
    ASSERT_TRUE(bench.open(job));
    EXPECT_EQ(mode_of(job), 0755u);
}

// Somebody else has made a folder where this job's would be, and has put an entry in it. Nothing of
// it counts, and the user reads whose it is and what to do.
TEST(LedgerOwner, RefusesTheFolderOfSomebodyElse) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
    LedgerBench bench;
    const Folder folder;
    const std::string job = folder / "job";
    ASSERT_EQ(bench.create(**bench.open(job), example_end(0)).outcome, Outcome::won);
    ASSERT_EQ(::chown(job.c_str(), kSomebody, kSomebody), 0);
    const auto refused = bench.open(job);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::refused);
    EXPECT_THAT(refused.error().sentence(),
                AllOf(HasSubstr("ledger folder " + job + " belongs to user 12345"),
                      HasSubstr("--ledger=directory:PATH")));
}

// In a folder where others may write, somebody has put a link in this job's place. It leads to
// another folder of the user, which would get a ledger, and lose permissions that he has given.
TEST(LedgerOwner, FollowsNoLinkOfSomebodyElse) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can give a link to another user";
    LedgerBench bench;
    const Folder folder;
    const std::string mine = folder / "mine", job = folder / "job";
    ASSERT_EQ(::mkdir(mine.c_str(), 0700), 0);
    ASSERT_EQ(::chmod(mine.c_str(), 0775), 0);
    ASSERT_EQ(::symlink(mine.c_str(), job.c_str()), 0);
    ASSERT_EQ(::lchown(job.c_str(), kSomebody, kSomebody), 0);
    const auto refused = bench.open(job);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::refused);
    EXPECT_THAT(refused.error().sentence(),
                HasSubstr("ledger folder " + job + " is a link of user 12345"));
    EXPECT_EQ(mode_of(mine), 0775u);
    EXPECT_TRUE(std::filesystem::is_empty(mine));
}

// The user's own link, to a folder on a file system that all nodes share.
TEST(LedgerOwner, FollowsALinkOfOurOwn) {
    LedgerBench bench;
    const Folder folder;
    const std::string mine = folder / "mine", job = folder / "job";
    ASSERT_EQ(::mkdir(mine.c_str(), 0700), 0);
    ASSERT_EQ(::symlink(mine.c_str(), job.c_str()), 0);
    auto ledger = bench.open(job);
    ASSERT_TRUE(ledger) << ledger.error();
    EXPECT_EQ(bench.create(**ledger, example_entry(0)).outcome, Outcome::won);
    EXPECT_TRUE(std::filesystem::exists(mine + "/entry-000000.json"));
}

// An open ledger, too, notices that the folder has been replaced by one of somebody else.
TEST(LedgerOwner, RefusesTheFolderOfSomebodyElseInTheMiddleOfAJob) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
    LedgerBench bench;
    const Folder folder;
    const std::string job = folder / "job";
    auto ledger = bench.open(job);
    ASSERT_TRUE(ledger);
    ASSERT_EQ(::chown(job.c_str(), kSomebody, kSomebody), 0);
    EXPECT_EQ(bench.create(**ledger, example_entry(0)).outcome, Outcome::failed);
    EXPECT_EQ(bench.read(**ledger, 0).error().code(), ErrorCode::refused);
}

// An entry that a member of the group planted before the folder was closed says "succeeded". The
// job does not believe it, and the user reads whose file it is.
TEST(LedgerOwner, BelievesNoEntryOfSomebodyElse) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file to another user";
    LedgerBench bench;
    const Folder folder;
    const std::string job = folder / "job";
    {
        auto ledger = bench.open(job);
        ASSERT_EQ(bench.create(**ledger, example_entry(0)).outcome, Outcome::won);
        ASSERT_EQ(bench.create(**ledger, example_end(1)).outcome, Outcome::won);
    }
    ASSERT_EQ(::chown((job + "/entry-000001.json").c_str(), kSomebody, kSomebody), 0);
    const auto refused = bench.open(job, LedgerBench::owner("abc123", 1));
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().sentence(), HasSubstr("entry-000001.json belongs to user 12345"));
}

// A symbolic link in the place of an entry is not followed.
TEST(LedgerOwner, FollowsNoLink) {
    LedgerBench bench;
    const Folder folder;
    const std::string job = folder / "job";
    auto ledger = bench.open(job);
    ASSERT_TRUE(ledger);
    ASSERT_EQ(bench.create(**ledger, example_entry(0)).outcome, Outcome::won);
    std::filesystem::rename(job + "/entry-000000.json", folder / "planted");
    std::filesystem::create_symlink(folder / "planted", job + "/entry-000000.json");
    EXPECT_FALSE(bench.read(**ledger, 0));
}

}  // namespace
}  // namespace ddprun::rendezvous
