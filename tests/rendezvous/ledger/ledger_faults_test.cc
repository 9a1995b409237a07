// A ledger in a folder on a real file system that fails: it hangs, is full, is read-only, or denies
// access. The fault is often the user's to mend, so each sentence must name the folder and the way
// out. Tests that need mounts are skipped without root.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "tests/rendezvous/ledger/ledger_bench.h"

namespace ddprun::rendezvous {
namespace {

using testing::HasSubstr;

// A pipe in place of a file: open() for reading hangs in the kernel until somebody opens the pipe
// for writing. To the ledger this looks like a network file system whose server is gone.
struct Hang {
    std::string path;
    explicit Hang(std::string at) : path(std::move(at)) {
        EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0);
    }
    // Opening the pipe lets the reader in, and closing it gives the reader an empty file. The pipe
    // is removed in between, so that nobody hangs on it again.
    void let_go() {
        const int end = ::open(path.c_str(), O_RDWR | O_NONBLOCK);
        ::unlink(path.c_str());
        ::close(end);
    }
};

// The file system hangs under a running job. Each call must be answered within its limit, here 50
// ms, so that the job can react. Afterwards the same ledger works again.
TEST(LedgerFaults, AHungFolderIsAnsweredForAndComesBack) {
    LedgerBench bench;
    const Folder folder;
    const auto ledger =
        bench.open(folder / "job", LedgerBench::owner(), {.call = std::chrono::milliseconds{50}});
    ASSERT_TRUE(ledger) << ledger.error();
    // Without the limit: a busy disk may take longer than 50 ms for a good write.
    const auto patient = bench.open(folder / "job");
    ASSERT_EQ(bench.create(**patient, example_entry(0)).outcome, Outcome::won);
    Hang hang(folder / "job/entry-000001.json");
    const auto late = bench.create(**ledger, example_entry(1, 7));
    EXPECT_EQ(late.outcome, Outcome::failed);
    EXPECT_THAT(late.sentence, HasSubstr("job has not answered for"));
    // The file thread still hangs in the create, so the read fails as well.
    EXPECT_EQ(bench.read(**ledger, 0).error().code(), ErrorCode::timed_out);
    hang.let_go();
    // The file thread needs a moment to come out of its call.
    LedgerCreated again;
    EXPECT_TRUE(comes_true([&] {
        again = bench.create(**ledger, example_entry(1, 7));
        return again.outcome != Outcome::failed;
    }));
    EXPECT_EQ(again.outcome, Outcome::won);
}

// The file system hangs when a job begins: first a line that says so, then an error with the way
// out. A user must not stare at a silent job.
TEST(LedgerFaults, AHungFolderIsGivenUpAtTheStart) {
    LedgerBench bench;
    const Folder folder;
    std::filesystem::create_directory(folder / "job");
    Hang hang(folder / "job/ledger.json");
    const auto given_up = bench.open(
        folder / "job", LedgerBench::owner(),
        {.mention = std::chrono::milliseconds{20}, .opening = std::chrono::milliseconds{60}});
    EXPECT_EQ(given_up.error().code(), ErrorCode::timed_out);
    EXPECT_THAT(given_up.error().sentence(),
                HasSubstr("; choose another with --ledger=directory:PATH"));
    EXPECT_TRUE(bench.lines.has("still waiting for its file system"));
    hang.let_go();
}

// Runs the checks in a child with mounts of its own, so that nothing of them is left. Returns 0 if
// the checks held, 77 if the child may not make mounts.
int in_own_mounts(const std::function<void()>& checks) {
    const pid_t child = ::fork();
    if (child == 0) {
        // Private, or the mounts would also appear outside.
        if (::unshare(CLONE_NEWNS) != 0 ||
            ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
            ::_exit(77);
        checks();
        ::_exit(testing::Test::HasFailure() ? 1 : 0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

#define NEEDS_MOUNTS(result) \
    if ((result) == 77) GTEST_SKIP() << "may not make a mount namespace"

// The disk is full, a usual thing. The create fails with this reason, leaves no half entry, and
// works once there is room. A half entry would end the job: it can be neither read nor replaced.
TEST(LedgerFaults, AFullDiskLeavesNoHalfEntry) {
    const Folder folder;
    const std::string mounted = folder / "disk";
    const int result = in_own_mounts([&] {
        std::filesystem::create_directory(mounted);
        // A disk of 64 KiB, large enough for some entries.
        ASSERT_EQ(::mount("none", mounted.c_str(), "tmpfs", 0, "size=64k"), 0);
        LedgerBench bench;
        const auto ledger = bench.open(mounted + "/job");
        ASSERT_TRUE(ledger) << ledger.error();
        std::ofstream fill(mounted + "/fill");
        while (fill << std::string(4096, 'x') && fill.flush()) continue;
        const auto full = bench.create(**ledger, example_entry(0));
        EXPECT_EQ(full.outcome, Outcome::failed);
        EXPECT_THAT(full.sentence, HasSubstr("job: No space left on device; choose another with "
                                             "--ledger=directory:PATH"));
        EXPECT_TRUE(bench.read(**ledger, 0)->empty());
        // A job that begins now learns it at once.
        EXPECT_THAT(bench.open(mounted + "/new").error().sentence(), HasSubstr("No space left"));
        fill.close();
        std::filesystem::remove(mounted + "/fill");
        EXPECT_EQ(bench.create(**ledger, example_entry(0)).outcome, Outcome::won);
    });
    NEEDS_MOUNTS(result);
    EXPECT_EQ(result, 0);
}

// The kernel may make a file system read-only when its disk fails. Creates fail with this reason,
// reads go on. At the start such a folder is refused at once, before any worker runs.
TEST(LedgerFaults, AReadOnlyFileSystemIsSaid) {
    const Folder folder;
    const std::string mounted = folder / "disk";
    const int result = in_own_mounts([&] {
        std::filesystem::create_directory(mounted);
        ASSERT_EQ(::mount("none", mounted.c_str(), "tmpfs", 0, nullptr), 0);
        LedgerBench bench;
        const auto ledger = bench.open(mounted + "/job");
        ASSERT_TRUE(ledger) << ledger.error();
        ASSERT_EQ(bench.create(**ledger, example_entry(0)).outcome, Outcome::won);
        // What the kernel does, done by hand.
        ASSERT_EQ(::mount("none", mounted.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr), 0);
        const auto refused = bench.create(**ledger, example_entry(1));
        EXPECT_EQ(refused.outcome, Outcome::failed);
        EXPECT_THAT(refused.sentence, HasSubstr("Read-only file system; choose another"));
        EXPECT_EQ(bench.read(**ledger, 0)->size(), 1u);
        EXPECT_THAT(bench.open(mounted + "/job").error().sentence(),
                    HasSubstr("job: Read-only file system; choose another"));
    });
    NEEDS_MOUNTS(result);
    EXPECT_EQ(result, 0);
}

// Wrong permissions of the folder above, of the folder, and of one entry, as when another user has
// made them. The sentence names the path.
TEST(LedgerFaults, WrongPermissionsAreSaid) {
    const Folder folder;
    // The child is another user and must be able to write here.
    std::filesystem::permissions(folder / "", std::filesystem::perms::all);
    const pid_t child = ::fork();
    if (child == 0) {
        // Root may read and write everything, so the checks need another user: 65534 is nobody.
        if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) ::_exit(77);
        LedgerBench bench;
        using std::filesystem::perms;
        std::filesystem::create_directory(folder / "closed");
        std::filesystem::permissions(folder / "closed", perms::owner_read | perms::owner_exec);
        EXPECT_THAT(bench.open(folder / "closed/job").error().sentence(),
                    HasSubstr("closed/job: Permission denied; choose another"));
        EXPECT_THAT(bench.open(folder / "closed").error().sentence(),
                    HasSubstr("closed: Permission denied; choose another"));
        const auto ledger = bench.open(folder / "job");
        EXPECT_EQ(bench.create(**ledger, example_entry(0)).outcome, Outcome::won);
        std::filesystem::permissions(folder / "job/entry-000000.json", perms::none);
        EXPECT_THAT(bench.read(**ledger, 0).error().sentence(),
                    HasSubstr("entry-000000.json: Permission denied"));
        std::filesystem::permissions(folder / "job/entry-000000.json", perms::owner_read);
        ::_exit(testing::Test::HasFailure() ? 1 : 0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace ddprun::rendezvous
