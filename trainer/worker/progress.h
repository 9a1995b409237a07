// Tells the launcher how far the training is: a line `step=N snapshot=M` on the descriptor
// DDPRUN_PROGRESS_FD; once a snapshot is complete, with ` snapshot_ms=D`, how long saving it took.
//
// `snapshot` is the step of the newest complete snapshot, -1 while there is none. A reader that is
// gone or slow never stops or fails the training: such a line is dropped. Without the variable
// nothing is written. Thread: one at a time.
#pragma once

#include <cstdint>
#include <string>

namespace ddprun::trainer {

class Progress {
  public:
    // -1: report nowhere. The descriptor stays the caller's.
    explicit Progress(int fd) : fd_(fd) {}

    // The only place that reads the variable.
    static Progress from_environment();

    // `snapshot_ms` < 0: nothing is said of a duration.
    void report(std::int64_t step, std::int64_t snapshot, std::int64_t snapshot_ms = -1);

    static std::string line(std::int64_t step, std::int64_t snapshot,
                            std::int64_t snapshot_ms = -1);

  private:
    int fd_;
};

}  // namespace ddprun::trainer
