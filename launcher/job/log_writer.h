// Where log lines go: one line an event, "ddprun: sentence" or "ddprun n3: sentence" in a job of
// several nodes. Thread: the loop's. Owner: main.
//
// The writer must not block: a log line that waits for a reader of standard error would stop the
// loop, and with it signals and beats.
#pragma once

#include <functional>
#include <string>

#include "base/note.h"

namespace ddprun::launcher {

class LogWriter {
  public:
    using Write = std::function<void(const std::string& line)>;  // with its end of line

    // Notes below `least` are not shown.
    LogWriter(const std::string& name, Note::Level least, Write write)
        : prefix_(name + ": "), least_(least), write_(std::move(write)) {}

    void operator()(const Note& note) {
        if (note.level >= least_) raw(note.sentence);
    }
    void raw(const std::string& text) { write_(prefix_ + text + "\n"); }  // of a report, as it is

  private:
    std::string prefix_;
    Note::Level least_;
    Write write_;
};

}  // namespace ddprun::launcher
