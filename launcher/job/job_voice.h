// Prints what a job has to say: its log lines, and the consoles that these share with the workers'
// output.
//
// Thread: the loop's. The workers' files and the consoles each have a thread of their own
// (FileThread), so that a hung file system holds up one of them only.
#pragma once

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <optional>
#include <string>

#include "agent/output/console.h"
#include "agent/output/late_fault.h"
#include "base/log.h"
#include "base/log_line.h"

namespace ddprun::launcher {

class JobVoice {
  public:
    JobVoice(boost::asio::io_context& loop, const agent::Console::Options& options);

    // Starts the log: notes below `least` are dropped. Call it before say() and log().
    void open(LogStyle style, Note::Level least);
    void lower_to(Note::Level least) { least_ = std::min(least_, least); }
    bool is_open() const { return style_.has_value(); }
    bool is_json() const { return style_ && style_->json; }

    // `report`: a JSON text, which only lines in JSON show.
    void say(Note::Level level, const std::string& sentence, const std::string& report = {});
    Log log();

    agent::Console& out() { return out_; }
    // If stdout and stderr are the same pipe or file, both are this one queue. Two queues would
    // tear each other's lines.
    agent::Console& err() { return own_err_ ? *own_err_ : out_; }
    FileThread& files() { return log_files_; }  // for the files with the workers' output
    // Told by flush().
    std::shared_ptr<agent::LateFault> late_fault() const { return late_fault_; }

    // Bytes that could not be written. A loss on stderr cannot be reported there, so it goes into
    // the report's JSON.
    struct Unread {
        std::size_t out = 0, err = 0;
    };
    // Writes out everything that is still queued. Call it when no worker lives and the runner has
    // handed its last output to the file thread. Waits up to `patience` for each reader or file
    // system that takes nothing.
    Unread flush(Duration patience);

  private:
    void broken(const Error& stream);

    const std::shared_ptr<agent::LateFault> late_fault_ = std::make_shared<agent::LateFault>();
    FileThread log_files_, console_files_;
    const bool one_console_;
    agent::Console out_;
    std::optional<agent::Console> own_err_;
    std::optional<LogStyle> style_;  // empty: not open yet
    Note::Level least_ = Note::Level::info;
};

}  // namespace ddprun::launcher
