// Where log lines go: standard error, one line an event, "ddprun: sentence" or "ddprun n3:
// sentence" in a job of several nodes. Thread: the loop's. Owner: main.
#pragma once

#include <memory>
#include <string>

#include "rendezvous/note.h"

namespace ddprun::launcher {

class Log {
  public:
    // Notes below `least` are not shown.
    Log(std::string name, rendezvous::Note::Level least);
    ~Log();

    void operator()(const rendezvous::Note& note);
    void raw(const std::string& text);  // lines of a report, as they are

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace ddprun::launcher
