// What a job prints: its own lines, and the consoles that they share with those of its workers.
//
// Thread: the loop's. Files and consoles have threads of their own (FileThread), so that none waits
// for what hangs another.
#pragma once

#include <boost/asio/io_context.hpp>
#include <optional>
#include <string>

#include "agent/output/console.h"
#include "base/log.h"
#include "launcher/job/log_writer.h"

namespace ddprun::launcher {

class JobVoice {
  public:
    JobVoice(boost::asio::io_context& loop, agent::Overflow overflow);

    // Nothing may be said before.
    void open(const std::string& name, Note::Level least);
    bool is_open() const { return log_.has_value(); }

    void say(Note::Level level, const std::string& sentence);
    void raw(const std::string& line) { log_->raw(line); }  // of a report, as it is
    Log log();

    agent::Console& out() { return out_; }
    // Where stdout and stderr are one pipe, its lines are torn unless one queue has them all.
    agent::Console& err() { return own_err_ ? *own_err_ : out_; }
    FileThread& files() { return log_files_; }  // of the workers' output

    // What is lost of stderr cannot be said there: the report's JSON says it.
    struct Unread {
        std::size_t out = 0, err = 0;
    };
    // When no worker lives, and the runner has left to the file thread what their files lack: waits
    // up to `patience` for each reader or file system that takes nothing.
    Unread flush(Duration patience);

  private:
    void broken(const Error& stream);

    FileThread log_files_, console_files_;
    const bool one_console_;
    agent::Console out_;
    std::optional<agent::Console> own_err_;
    std::optional<LogWriter> log_;
};

}  // namespace ddprun::launcher
