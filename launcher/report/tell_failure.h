// Brings the report of a failed job to where it is read: console, JSON file beside the logs, the
// file of a scheduler above us, the user's program. Each has a time limit. A failure of one becomes
// a warning and does not keep the others from the report.
//
// Thread: the loop's. The loop must not be running; the functions run it until they are done.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <string>

#include "base/loop/file_thread.h"
#include "launcher/report/failure_report.h"

namespace ddprun::launcher {

// Where the report goes on this node.
struct FailureOutlets {
    bool in_full = true;         // on the console, all lines
    bool in_a_line = true;       // on the console in one line, if not in full
    std::string json_file;       // empty: not written
    std::string scheduler_file;  // TORCHELASTIC_ERROR_FILE of ddprun's own environment; empty: none
    std::string program;         // --on-failure; empty: none, or another node calls it
};

class TellFailure {
  public:
    using Say = std::function<void(const std::string&)>;

    // `print` gets each line as it is, `warn` gets sentences for the log. All four must outlive the
    // object.
    TellFailure(boost::asio::io_context& loop, FileThread& files, Say print, Say warn);

    void tell(FailureReport report, const FailureOutlets& outlets);

  private:
    void name_torn_checkpoint(FailureReport& report);
    bool keep(const std::string& path, const std::string& text);
    void show(const std::string& output);
    void call(const std::string& program, const std::string& json);

    boost::asio::io_context& loop_;
    FileThread& files_;
    Say print_, warn_;
};

}  // namespace ddprun::launcher
