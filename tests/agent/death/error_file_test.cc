// Reads error files of workers from a real folder, on the file thread. The loop must never wait for
// the file system that they lie on.
#include "agent/death/error_file.h"

#include <sys/stat.h>

#include <future>

#include "tests/agent/output/output_rig.h"

using namespace ddprun;
using namespace ddprun::agent;

namespace {

struct ErrorFiles : Rig {
    // Reads one file and runs the loop until the answer comes. The default patience never runs out
    // in a healthy test; only the test of a hanging file system gives a short one.
    ErrorFile read(const std::string& path, Duration patience = std::chrono::seconds{20}) {
        std::optional<ErrorFile> found;
        read_error_file(files, path, patience, [&](const ErrorFile& file) { found = file; });
        EXPECT_FALSE(found) << "never from within the call";
        EXPECT_TRUE(run_until([&] { return found.has_value(); }));
        return found.value_or(ErrorFile{});
    }
};

}  // namespace

// The time decides which worker failed first. It comes from the file's time of day and is converted
// to our clock, so the test allows 10 s: enough for a slow machine, and far too little for a
// conversion that mixes up two clocks.
TEST(ErrorFile, IsReadWithItsTime) {
    ErrorFiles rig;
    const Time before = boot_now();
    std::ofstream(rig.path("error.json"))
        << R"({"message": {"message": "KeyError: 3", "errorCode": 7}})";
    const ErrorFile found = rig.read(rig.path("error.json"));
    EXPECT_TRUE(found.there);
    EXPECT_EQ(found.error, "KeyError: 3");
    EXPECT_EQ(found.exit_code, 7);
    EXPECT_EQ(found.problem, "");
    ASSERT_TRUE(found.written);
    EXPECT_LT(std::chrono::abs(*found.written - before), std::chrono::seconds{10});
}

// Most programs write no error file. That is no problem to report.
TEST(ErrorFile, MayNotBeThere) {
    ErrorFiles rig;
    const ErrorFile found = rig.read(rig.path("nothing"));
    EXPECT_FALSE(found.there);
    EXPECT_EQ(found.problem, "");
}

// The file thread is busy with a job that does not end, as with a network file system that stalls.
// The death is reported without the account, so that the restart is not delayed. The late answer
// after set_value() is ignored.
TEST(ErrorFile, OfAFileSystemThatHangsIsNotWaitedFor) {
    ErrorFiles rig;
    std::promise<void> answers;
    rig.files.post([hung = answers.get_future().share()] { hung.wait(); });
    const std::string path = rig.path("error.json");
    const ErrorFile found = rig.read(path, std::chrono::milliseconds{20});
    EXPECT_EQ(found.problem,
              "error file " + path + " cannot be read: its file system does not answer");
    answers.set_value();
    EXPECT_TRUE(rig.files.drain(Rig::kPatience));
}

// The file system was full when the worker wrote it: what is there has no content.
TEST(ErrorFile, MayBeEmpty) {
    ErrorFiles rig;
    std::ofstream(rig.path("error.json")) << "";
    const ErrorFile found = rig.read(rig.path("error.json"));
    EXPECT_TRUE(found.there);
    EXPECT_TRUE(found.problem.starts_with("error file " + rig.path("error.json") + " is empty"))
        << found.problem;
}

// A worker may have made a link to any file of ours.
TEST(ErrorFile, IsNoLink) {
    ErrorFiles rig;
    std::ofstream(rig.path("target")) << R"({"message": "secret"})";
    std::filesystem::create_symlink(rig.path("target"), rig.path("error.json"));
    EXPECT_EQ(
        rig.read(rig.path("error.json")).problem,
        "error file " + rig.path("error.json") + " is a link, and links are not followed there");
}
