#include "launcher/report/tell_failure.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>

#include "base/loop/child_program.h"
#include "base/system/random_bytes.h"
#include "launcher/report/failure_json.h"

namespace ddprun::launcher {
namespace {

constexpr auto kWriteLimit = std::chrono::seconds{5};
constexpr auto kProgramLimit = std::chrono::seconds{30};

// The reason, or nothing. A reader never sees half a report: the name comes last. Until then it has
// one of its own, for other nodes may write the same file.
std::optional<std::string> write_file(const std::string& path, const std::string& text) {
    const std::string unfinished = path + ".part-" + std::to_string(random_number());
    std::ofstream file(unfinished, std::ios::trunc);
    file << text << std::flush;
    file.close();
    if (file && std::rename(unfinished.c_str(), path.c_str()) == 0) return std::nullopt;
    const std::string why = std::strerror(errno);
    std::remove(unfinished.c_str());
    return why;
}

}  // namespace

TellFailure::TellFailure(boost::asio::io_context& loop, FileThread& files, Say print, Say warn)
    : loop_(loop), files_(files), print_(std::move(print)), warn_(std::move(warn)) {}

void TellFailure::tell(const FailureReport& report, const FailureOutlets& outlets) {
    const std::string json = failure_json(report);
    const bool kept = !outlets.json_file.empty() && keep(outlets.json_file, json);
    if (outlets.in_full)
        for (const std::string& line : report_lines(report, kept ? outlets.json_file : ""))
            print_(line);
    else if (outlets.in_a_line)
        print_(report_line(report));
    if (!outlets.scheduler_file.empty())
        keep(outlets.scheduler_file, torchrun_error_json(report, report.context.now));
    if (!outlets.program.empty()) call(outlets.program, json);
}

bool TellFailure::keep(const std::string& path, const std::string& text) {
    struct Writing {
        bool done = false;
        std::optional<std::string> failure;
    };
    const auto writing = std::make_shared<Writing>();  // the write may outlive us, hanging
    files_.post([writing, path, text] { writing->failure = write_file(path, text); },
                [writing] { writing->done = true; });
    run_until(writing->done, kWriteLimit);
    if (writing->done && !writing->failure) return true;
    warn_("the failure report is not kept in " + path + ": " +
          (writing->done ? *writing->failure
                         : "not written within " + to_text(Duration(kWriteLimit))));
    return false;
}

void TellFailure::call(const std::string& program, const std::string& json) {
    bool done = false;
    const auto called = [&](std::exception_ptr, Result<ProgramResult> result) {
        done = true;
        if (!result)
            warn_("--on-failure: " + result.error().sentence());
        else if (result->code != 0)
            warn_("--on-failure: " + program +
                  (result->code < 0 ? " was ended by a signal"
                                    : " exited with " + std::to_string(result->code)));
    };
    boost::asio::co_spawn(loop_, run_program({program}, json, kProgramLimit, StandardError::ours),
                          called);
    run_until(done, kProgramLimit + kWriteLimit);
}

void TellFailure::run_until(const bool& done, Duration limit) {
    boost::asio::steady_timer timer(loop_, limit);
    bool late = false;
    timer.async_wait([&late](const boost::system::error_code& error) { late = !error; });
    while (!done && !late) {
        if (loop_.stopped()) loop_.restart();
        loop_.run_one();
    }
    timer.cancel();
    loop_.restart();
    while (loop_.poll_one() != 0) continue;  // the timer's handler refers to this frame
}

}  // namespace ddprun::launcher
