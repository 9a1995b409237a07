// Where the report of a failed job goes: the console, a file beside the logs, the file that a
// scheduler above us reads, and the user's own program. Each is bounded in time, and what goes
// wrong with one is a warning and keeps nothing from the others.
//
// Thread: the loop's, which must not be running; the functions run it until they are done.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <string>

#include "base/loop/file_thread.h"
#include "launcher/report/failure_report.h"

namespace ddprun::launcher {

struct FailureOutlets {
    bool in_full = true;         // on the console
    bool in_a_line = true;       // else; or not at all
    std::string json_file;       // empty: not kept
    std::string scheduler_file;  // TORCHELASTIC_ERROR_FILE of our own environment; empty: none
    std::string program;         // --on-failure; empty: none, or another node calls it
};

class TellFailure {
  public:
    using Say = std::function<void(const std::string&)>;

    // `print` takes a line as it is, `warn` a sentence for the log. All must outlive this.
    TellFailure(boost::asio::io_context& loop, FileThread& files, Say print, Say warn);

    void tell(const FailureReport& report, const FailureOutlets& outlets);

  private:
    bool keep(const std::string& path, const std::string& text);
    void call(const std::string& program, const std::string& json);
    void run_until(const bool& done, Duration limit);

    boost::asio::io_context& loop_;
    FileThread& files_;
    Say print_, warn_;
};

}  // namespace ddprun::launcher
