// Where the report of a failure is kept, by one ddprun and by many at once.
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

// What is said when this file is to be written.
std::vector<std::string> told(const std::string& path, const std::string& node) {
    FailureReport report;
    report.verdict = "worker_failed";
    report.reason = "the worker of " + node + " failed";
    report.context.node = node;
    FailureOutlets outlets;
    outlets.in_full = outlets.in_a_line = false;
    outlets.scheduler_file = path;
    boost::asio::io_context loop;
    FileThread files(loop);
    std::vector<std::string> warnings;
    TellFailure(
        loop, files, [](const std::string&) {},
        [&](const std::string& warning) { warnings.push_back(warning); })
        .tell(report, outlets);
    return warnings;
}

// All nodes of a job have the variable that names the file, and often the file system, too: each
// writes all of it, the last one's stays, and nothing else.
TEST(TellFailure, ManyNodesWriteOneFile) {
    const Folder folder;
    const std::string path = folder / "error.json";
    std::vector<std::vector<std::string>> warnings(8);
    std::vector<std::thread> nodes;
    for (std::size_t i = 0; i < warnings.size(); ++i)
        nodes.emplace_back([&, i] {
            const std::string name(100 * (i + 1), static_cast<char>('a' + i));
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

TEST(TellFailure, SaysWhatCannotBeWritten) {
    const Folder folder;
    const std::string path = folder / "missing/error.json";
    EXPECT_THAT(told(path, "gpu01"), ElementsAre("the failure report is not kept in " + path +
                                                 ": No such file or directory"));
}

}  // namespace
}  // namespace ddprun::launcher
