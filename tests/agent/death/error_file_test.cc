// Error files are read beside the loop, whatever their file system does.
#include "agent/death/error_file.h"

#include <sys/stat.h>

#include <future>

#include "tests/agent/output/output_rig.h"

using namespace ddprun;
using namespace ddprun::agent;

namespace {

struct ErrorFiles : Rig {
    ErrorFile read(const std::string& path, Duration patience = std::chrono::seconds{20}) {
        std::optional<ErrorFile> found;
        read_error_file(files, path, patience, [&](const ErrorFile& file) { found = file; });
        EXPECT_FALSE(found) << "never from within the call";
        EXPECT_TRUE(run_until([&] { return found.has_value(); }));
        return found.value_or(ErrorFile{});
    }
};

}  // namespace

TEST(ErrorFile, IsReadWithItsTime) {
    ErrorFiles rig;
    const Time before = boot_now();
    std::ofstream(rig.path("error.json")) << R"({"message": {"message": "KeyError: 3"}})";
    const ErrorFile found = rig.read(rig.path("error.json"));
    EXPECT_TRUE(found.there);
    EXPECT_EQ(found.error, "KeyError: 3");
    EXPECT_EQ(found.problem, "");
    ASSERT_TRUE(found.written);
    EXPECT_LT(std::chrono::abs(*found.written - before), std::chrono::seconds{10});
}

TEST(ErrorFile, MayNotBeThere) {
    ErrorFiles rig;
    const ErrorFile found = rig.read(rig.path("nothing"));
    EXPECT_FALSE(found.there);
    EXPECT_EQ(found.problem, "");
}

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
