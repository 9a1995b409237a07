// Where the report of a failure is written, by one ddprun and by many at once. With real files and
// threads.
#include "launcher/report/tell_failure.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "tests/support/loop.h"

namespace ddprun::launcher {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string text_of(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

// Writes the report of this node to the file, and nothing to the console. Returns the warnings.
std::vector<std::string> told(const std::string& path, const std::string& node) {
    FailureReport report;
    report.verdict = "worker_failed";
    report.reason = "the worker of " + node + " failed";
    report.context.node = node;
    FailureOutlets outlets;
    outlets.in_full = outlets.in_a_line = false;
    outlets.scheduler_file = path;
    boost::asio::io_context loop;
    // Files are written on a thread of their own, since a network file system may hang.
    FileThread files(loop);
    std::vector<std::string> warnings;
    TellFailure(
        loop, files, [](const std::string&) {},
        [&](const std::string& warning) { warnings.push_back(warning); })
        .tell(report, outlets);
    return warnings;
}

// TORCHELASTIC_ERROR_FILE names the same file on all nodes, often on a shared file system. All
// nodes write it at once. A whole report of one of them stays, and no temporary file is left.
TEST(TellFailure, ManyNodesWriteOneFile) {
    const Folder folder;
    const std::string path = folder / "error.json";
    std::vector<std::vector<std::string>> warnings(8);
    std::vector<std::thread> nodes;
    for (std::size_t i = 0; i < warnings.size(); ++i)
        nodes.emplace_back([&, i] {
            // Reports of different lengths, so that a mixture of two would be no valid JSON.
            const std::string name(100 * (i + 1), static_cast<char>('a' + i));
            // Fifty rounds, so that writes meet.
            for (int time = 0; time < 50 && warnings[i].empty(); ++time)
                warnings[i] = told(path, name);
        });
    for (std::thread& node : nodes) node.join();
    for (const auto& each : warnings) EXPECT_THAT(each, IsEmpty());
    EXPECT_TRUE(nlohmann::json::accept(text_of(path))) << text_of(path);
    std::vector<std::string> names;
    for (const auto& file : std::filesystem::directory_iterator(folder / ""))
        names.push_back(file.path().filename());
    EXPECT_THAT(names, ElementsAre("error.json"));
}

// The folder does not exist. The warning names path and reason, and the job ends as it would
// otherwise.
TEST(TellFailure, SaysWhatCannotBeWritten) {
    const Folder folder;
    const std::string path = folder / "missing/error.json";
    EXPECT_THAT(told(path, "gpu01"), ElementsAre("cannot write the failure report to " + path +
                                                 ": No such file or directory"));
}

// What the user's program prints is shown in lines of its own. It is text from outside, so it is
// bounded, and no terminal obeys it. The program's failure comes after it, as a warning.
TEST(TellFailure, ShowsWhatTheUsersProgramPrints) {
    const Folder folder;
    const std::string program = folder / "tell";
    std::ofstream(program) << "#!/bin/sh\nprintf 'told \\033]0;x\\n'; printf '%0600d\\n' 7\n"
                              "seq 3 25; printf end; exit 3\n";
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    FailureOutlets outlets;
    outlets.in_full = outlets.in_a_line = false;
    outlets.program = program;
    boost::asio::io_context loop;
    FileThread files(loop);
    std::vector<std::string> lines;
    const auto say = [&](const std::string& line) { lines.push_back(line); };
    TellFailure(loop, files, say, say).tell(FailureReport(), outlets);
    ASSERT_EQ(lines.size(), 22U);
    EXPECT_EQ(lines[0], "--on-failure: told \\x1b]0;x");
    EXPECT_EQ(lines[1], "--on-failure: " + std::string(500, '0') + " ...");
    EXPECT_EQ(lines[19], "--on-failure: 20");
    EXPECT_EQ(lines[20], "--on-failure: 6 more lines are not shown (at most 20)");
    EXPECT_EQ(lines[21], "--on-failure: " + program + " exited with 3");
}

}  // namespace
}  // namespace ddprun::launcher
