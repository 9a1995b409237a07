// Writes the report's files and runs the user's --on-failure program.
#include "launcher/report/tell_failure.h"

#include <boost/asio/co_spawn.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>
#include <string_view>

#include "base/loop/child_program.h"
#include "base/loop/run_loop_until.h"
#include "base/printable.h"
#include "base/system/careful_open.h"
#include "launcher/report/failure_json.h"
#include "launcher/report/torn_checkpoint.h"

namespace ddprun::launcher {
namespace {

// For one file, and for the user's program. launcher/README.md promises the second.
constexpr auto kWriteLimit = std::chrono::seconds{5};
constexpr auto kProgramLimit = std::chrono::seconds{30};
// Of what the user's program prints: lines, and bytes of a line. launcher/README.md promises both.
constexpr std::size_t kShownLines = 20, kShownLength = 500;
// Folders beside a checkpoint, and files in one, that are looked at.
constexpr std::size_t kMostEntries = 1000;

std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder) {
    std::vector<std::filesystem::path> entries;
    std::error_code error;
    for (std::filesystem::directory_iterator each(folder, error), end;
         !error && each != end && entries.size() < kMostEntries; each.increment(error))
        entries.push_back(each->path());
    return entries;
}

// The folder itself, too.
std::vector<CheckpointFolder> folders_beside(const std::string& path) {
    std::vector<CheckpointFolder> found;
    for (const auto& folder : entries_of(std::filesystem::path(path).parent_path())) {
        if (!folder.filename().string().starts_with("checkpoint")) continue;
        CheckpointFolder& one = found.emplace_back(folder.filename().string());
        for (const auto& file : entries_of(folder)) one.files.insert(file.filename().string());
    }
    return found;
}

}  // namespace

TellFailure::TellFailure(boost::asio::io_context& loop, FileThread& files, Say print, Say warn)
    : loop_(loop), files_(files), print_(std::move(print)), warn_(std::move(warn)) {}

// The JSON file comes first, because the text names it only if it could be written. The user's
// program comes last: by then all else is in place, and it may take long.
void TellFailure::tell(FailureReport report, const FailureOutlets& outlets) {
    if (outlets.in_full) name_torn_checkpoint(report);
    const std::string json = failure_json(report);
    const bool kept = !outlets.json_file.empty() && keep(outlets.json_file, json);
    // A file that could not be written is not named in the text.
    if (outlets.in_full)
        for (const std::string& line : report_lines(report, kept ? outlets.json_file : ""))
            print_(line);
    else if (outlets.in_a_line)
        print_(report_line(report));
    if (!outlets.scheduler_file.empty())
        keep(outlets.scheduler_file, torchrun_error_json(report, report.context.now));
    if (!outlets.program.empty()) call(outlets.program, json);
}

// As a note below the first failure. A path that is not absolute is seen from the working
// directory, which is that of the workers, too.
void TellFailure::name_torn_checkpoint(FailureReport& report) {
    if (!report.first) return;
    std::vector<std::string> lines = report.first->outcome.tail;
    lines.push_back(report.first->outcome.error);
    const std::string path = checkpoint_named_in(lines);
    if (path.empty()) return;
    struct Looking {
        bool done = false;
        std::vector<CheckpointFolder> found;
    };
    // Shared, because a file system that hangs may outlive this call.
    const auto looking = std::make_shared<Looking>();
    files_.post([looking, path] { looking->found = folders_beside(path); },
                [looking] { looking->done = true; });
    run_loop_until(
        loop_, [&] { return looking->done; }, kWriteLimit);
    if (!looking->done) return;
    if (const auto sentence = torn_sentence(path, looking->found))
        report.first->outcome.remarks.push_back(*sentence);
}

bool TellFailure::keep(const std::string& path, const std::string& text) {
    struct Writing {
        bool done = false;
        Result<> written;
    };
    // Shared, because a write that hangs may outlive this call.
    const auto writing = std::make_shared<Writing>();
    // By the file thread: the log folder may lie on a file system that hangs.
    files_.post([writing, path, text] { writing->written = replace_file(path, text); },
                [writing] { writing->done = true; });
    run_loop_until(
        loop_, [&] { return writing->done; }, kWriteLimit);
    if (writing->done && writing->written) return true;
    warn_("cannot write the failure report to " + path + ": " +
          (writing->done ? writing->written.error().sentence()
                         : "no answer within " + to_text(Duration(kWriteLimit))));
    return false;
}

// What the user's program prints, in lines of their own.
void TellFailure::show(const std::string& output) {
    std::istringstream text(output);
    std::size_t lines = 0;
    for (std::string line; std::getline(text, line); ++lines)
        if (lines < kShownLines)
            print_("--on-failure: " + printable(std::string_view(line).substr(0, kShownLength)) +
                   (line.size() > kShownLength ? " ..." : ""));
    if (lines > kShownLines)
        print_("--on-failure: " + std::to_string(lines - kShownLines) +
               " more lines are not shown (at most " + std::to_string(kShownLines) + ")");
}

void TellFailure::call(const std::string& program, const std::string& json) {
    bool done = false;
    const auto called = [&](std::exception_ptr, Result<ProgramResult> result) {
        done = true;
        if (result) show(result->output);
        if (!result)
            warn_("--on-failure: " + result.error().sentence());
        else if (result->code != 0)
            warn_("--on-failure: " + program +
                  (result->code < 0 ? " was ended by a signal"
                                    : " exited with " + std::to_string(result->code)));
    };
    boost::asio::co_spawn(loop_, run_program({program}, json, kProgramLimit, StandardError::ours),
                          called);
    // run_program() ends the program after kProgramLimit. The rest is for killing and reaping it.
    run_loop_until(
        loop_, [&] { return done; }, kProgramLimit + kWriteLimit);
}

}  // namespace ddprun::launcher
