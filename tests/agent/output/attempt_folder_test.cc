// The folders and files of a generation, on a real file system. Users and their scripts look for
// logs where torchrun puts them.
#include "agent/output/attempt_folder.h"

#include <sys/stat.h>

#include "tests/agent/output/output_rig.h"

using namespace ddprun;
using namespace ddprun::agent;

namespace {

struct Folders : Rig {
    // What an AttemptFolder removes at its end is removed before the test's folder is.
    ~Folders() { EXPECT_TRUE(files.drain(kPatience)); }
    // Makes the folders of one generation and runs the loop until the file thread has done it.
    AttemptFiles make(AttemptFolder& folder, std::int64_t generation, WantedFiles wanted) {
        std::optional<AttemptFiles> made;
        folder.make(Generation{generation}, std::move(wanted),
                    [&](AttemptFiles files) { made = std::move(files); });
        EXPECT_TRUE(run_until([&] { return made.has_value(); }));
        return std::move(*made);
    }
    // Sorted paths below the folder, with "*" for the eight random characters of a run's folder.
    std::vector<std::string> found() const {
        std::vector<std::string> paths;
        for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
            std::string path = entry.path().lexically_relative(folder).string();
            const std::size_t at = path.find("/job_");
            if (at != path.npos) path.replace(at, 13, "/job_*");
            paths.push_back(path);
        }
        std::sort(paths.begin(), paths.end());
        return paths;
    }
};

}  // namespace

// Two ddpruns with the same log folder and run id, as after a requeue. The first one runs
// generations 0 and 4; in between it was a spare. Nothing is overwritten: each ddprun has a folder
// of its own.
TEST(AttemptFolder, IsLaidOutAsTorchrunDoes) {
    Folders rig;
    {
        AttemptFolder folder(rig.files, rig.path("logs"), "job");
        // Bits: 1 stdout, 2 stderr. Worker 0 gets both files, worker 1 only stdout, and the lines
        // of all workers' stderr that match a filter go to one more file.
        const AttemptFiles first = rig.make(folder, 0, {{3, 1}, 2});
        EXPECT_FALSE(first.problem);
        EXPECT_EQ(first.workers[1].folder, first.folder + "/1");
        EXPECT_TRUE(first.workers[0].streams[0] && first.workers[0].streams[1]);
        EXPECT_TRUE(first.workers[1].streams[0] && !first.workers[1].streams[1]);
        EXPECT_TRUE(!first.filtered[0] && first.filtered[1]);
        EXPECT_FALSE(rig.make(folder, 4, {{0}, 0}).problem);
    }
    AttemptFolder another(rig.files, rig.path("logs"), "job");
    EXPECT_FALSE(rig.make(another, 0, {{0}, 0}).problem);  // in a folder of its own
    EXPECT_EQ(
        rig.found(),
        (std::vector<std::string>{
            "logs", "logs/job_*", "logs/job_*", "logs/job_*/attempt_0", "logs/job_*/attempt_0",
            "logs/job_*/attempt_0/0", "logs/job_*/attempt_0/0", "logs/job_*/attempt_0/0/stderr.log",
            "logs/job_*/attempt_0/0/stdout.log", "logs/job_*/attempt_0/1",
            "logs/job_*/attempt_0/1/stdout.log", "logs/job_*/attempt_0/filtered_stderr.log",
            "logs/job_*/attempt_4", "logs/job_*/attempt_4/0"}));
}

// The user chooses the run id. A slash in it must not lead out of the log folder.
TEST(AttemptFolder, ARunIdMayHoldAnything) {
    Folders rig;
    AttemptFolder folder(rig.files, rig.path("logs"), "a/../b");
    const AttemptFiles made = rig.make(folder, 0, {{0}, 0});
    EXPECT_FALSE(made.problem);
    EXPECT_TRUE(made.folder.starts_with(rig.path("logs/a_.._b_"))) << made.folder;
}

// --log-dir names a plain file. The user reads one line about it, not one for each file that is
// missing. The workers start all the same: their error files go to a temporary folder, which is
// removed at the end.
TEST(AttemptFolder, AFolderThatCannotBeMadeIsNamed) {
    Folders rig;
    rig.file("plain");
    // The temporary folder is made here instead of in the machine's /dev/shm.
    ::setenv("TMPDIR", rig.folder.c_str(), 1);
    std::string temporary;
    {
        AttemptFolder folder(rig.files, rig.path("plain"), "job");
        const AttemptFiles made = rig.make(folder, 0, {{3, 3}, 3});
        ::unsetenv("TMPDIR");
        ASSERT_TRUE(made.problem);
        EXPECT_EQ(made.problem->sentence(),
                  "folder " + rig.path("plain") + " (--log-dir): Not a directory");
        EXPECT_FALSE(made.workers[0].streams[0]);
        EXPECT_FALSE(made.filtered[0]);
        temporary = folder.temporary();
        EXPECT_TRUE(made.workers[1].folder.starts_with(temporary));
        EXPECT_TRUE(std::filesystem::exists(made.workers[1].folder));
    }
    EXPECT_TRUE(rig.run_until([&] { return !std::filesystem::exists(temporary); }));
}

// A job that restarts for weeks would fill the memory with the folders of its generations. Those of
// a log folder stay.
TEST(AttemptFolder, KeepsOnlyTheNewestGenerationInATemporaryFolder) {
    Folders rig;
    ::setenv("TMPDIR", rig.folder.c_str(), 1);
    AttemptFolder temporary(rig.files, "", "job"), logs(rig.files, rig.path("logs"), "job");
    for (int generation = 0; generation < 3; ++generation) {
        EXPECT_FALSE(rig.make(temporary, generation, {{0, 0}, 0}).problem);
        EXPECT_FALSE(rig.make(logs, generation, {{0, 0}, 0}).problem);
    }
    ::unsetenv("TMPDIR");
    EXPECT_TRUE(rig.files.drain(Rig::kPatience));
    const auto in = [](const std::string& folder) {
        std::vector<std::string> names;
        for (const auto& entry : std::filesystem::directory_iterator(folder))
            names.push_back(entry.path().filename());
        std::sort(names.begin(), names.end());
        return names;
    };
    EXPECT_EQ(in(temporary.temporary()), (std::vector<std::string>{"attempt_2"}));
    EXPECT_EQ(in(logs.base()), (std::vector<std::string>{"attempt_0", "attempt_1", "attempt_2"}));
}

// The file system of the temporary folder has no inodes left in the middle of a job; here a file
// has taken the folder's place. Another temporary folder is made, and no worker is without one.
TEST(AttemptFolder, ATemporaryFolderThatTakesNothingIsReplaced) {
    Folders rig;
    ::setenv("TMPDIR", rig.folder.c_str(), 1);
    AttemptFolder folder(rig.files, "", "job");
    const std::string first = rig.make(folder, 0, {{0, 0}, 0}).temporary;
    EXPECT_TRUE(rig.files.drain(Rig::kPatience));
    std::filesystem::remove_all(first);
    std::ofstream(first) << "full";
    const AttemptFiles made = rig.make(folder, 1, {{0, 0}, 0});
    ::unsetenv("TMPDIR");
    EXPECT_FALSE(made.problem);
    EXPECT_NE(folder.temporary(), first);
    ASSERT_EQ(made.workers.size(), 2u);
    for (const AttemptFiles::Worker& worker : made.workers) {
        EXPECT_TRUE(worker.folder.starts_with(folder.temporary() + "/")) << worker.folder;
        EXPECT_TRUE(std::filesystem::is_directory(worker.folder));
    }
    EXPECT_TRUE(rig.files.drain(Rig::kPatience));
    EXPECT_TRUE(std::filesystem::exists(first)) << "what has taken its place is not ours";
}

// A log folder that takes one worker's files and not the next one's: all error files are in the
// temporary folder then, and the user reads why.
TEST(AttemptFolder, ALogFolderThatIsFullHalfWayIsNotUsed) {
    Folders rig;
    ::setenv("TMPDIR", rig.folder.c_str(), 1);
    AttemptFolder folder(rig.files, rig.path("logs"), "job");
    EXPECT_FALSE(rig.make(folder, 0, {{3, 3}, 0}).problem);
    std::filesystem::create_directories(folder.base() + "/attempt_1");
    std::ofstream(folder.base() + "/attempt_1/1") << "in the way";
    const AttemptFiles made = rig.make(folder, 1, {{3, 3}, 0});
    ::unsetenv("TMPDIR");
    ASSERT_TRUE(made.problem);
    EXPECT_TRUE(made.problem->sentence().ends_with("/attempt_1/1: Not a directory"))
        << made.problem->sentence();
    for (const AttemptFiles::Worker& worker : made.workers)
        EXPECT_TRUE(worker.folder.starts_with(folder.temporary() + "/")) << worker.folder;
}

// The file system of the logs hangs. Here an earlier job on the file thread does, until the test
// writes a byte. The loop must go on meanwhile: a lease would pass if it waited.
TEST(AttemptFolder, NobodyWaitsForIt) {
    Folders rig;
    Ends gate;
    // Ends made this end non-blocking; the job has to block.
    ::fcntl(gate.out.get(), F_SETFL, 0);
    rig.files.post([&gate] {
        char byte;
        EXPECT_EQ(::read(gate.out.get(), &byte, 1), 1);
    });
    AttemptFolder folder(rig.files, rig.path("logs"), "job");
    bool made = false;
    folder.make(Generation{0}, {{0}, 0}, [&](const AttemptFiles&) { made = true; });
    rig.run();
    EXPECT_FALSE(made);
    EXPECT_EQ(::write(gate.in.get(), "x", 1), 1);
    EXPECT_TRUE(rig.run_until([&] { return made; }));
}
