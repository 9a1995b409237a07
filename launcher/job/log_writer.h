// Formats log lines, one a note: "ddprun: sentence", or "ddprun n3: sentence" in a job of several
// nodes.
//
// Thread: the loop's. `write` must not block: waiting for a reader of standard error would stop the
// loop, and with it signals and heartbeats.
#pragma once

#include <functional>
#include <string>

#include "base/note.h"
#include "base/printable.h"

namespace ddprun::launcher {

class LogWriter {
  public:
    using Write = std::function<void(const std::string& line)>;  // gets the line with its newline

    // Notes below `least` are not shown.
    LogWriter(const std::string& name, Note::Level least, Write write)
        : prefix_(name + ": "), least_(least), write_(std::move(write)) {}

    void operator()(const Note& note) {
        if (note.level >= least_) raw(note.sentence);
    }
    // Whatever the level. Text from outside is shown, never obeyed.
    void raw(const std::string& text) { write_(prefix_ + printable(text) + "\n"); }

  private:
    std::string prefix_;
    Note::Level least_;
    Write write_;
};

}  // namespace ddprun::launcher
