// Tells the launcher how far the training is. Each report is a line `step=N snapshot=M` on the
// descriptor that DDPRUN_PROGRESS_FD names. After a snapshot is complete the line ends with
// `snapshot_ms=D`, the time in milliseconds that saving it took, and `saving_ms=D`, what all
// snapshots of this process have taken from its training so far.
//
// `snapshot` is the step of the newest complete snapshot, -1 if there is none yet. A reader that is
// slow or gone never blocks the training and never fails it: the line is dropped. Without the
// variable nothing is written. Thread: one at a time.
#pragma once

#include <cstdint>
#include <string>

namespace ddprun::trainer {

class Progress {
  public:
    // -1: reports nowhere. The descriptor still belongs to the caller.
    explicit Progress(int fd) : fd_(fd) {}

    // Uses the variable. Nothing else in the library reads it.
    static Progress from_environment();

    // Writes one line. A duration below 0 is left out.
    void report(std::int64_t step, std::int64_t snapshot, std::int64_t snapshot_ms = -1,
                std::int64_t saving_ms = -1);

    // Says that this rank's own gradient of a parameter is not finite: "gradient.w1=nan". One rank
    // says it, the one at which it was found first.
    void report_not_finite(const std::string& parameter);

    // Tells ddprun once where it may read in which collective call this worker is
    // (base/call_board.h).
    void tell_calls(std::uintptr_t address);

    // The line, with its line end.
    static std::string line(std::int64_t step, std::int64_t snapshot, std::int64_t snapshot_ms = -1,
                            std::int64_t saving_ms = -1);

  private:
    void write_line(const std::string& text);

    int fd_;
};

}  // namespace ddprun::trainer
