// Whether this worker was told that the end is near: by SIGTERM, or by the file that ddprun makes
// before it sends a signal (DDPRUN_STOP_FILE; it says why, and how long there is).
//
// The wish of one rank: agree on it (any_rank in agreement.h) at the end of each step, and all stop
// after the same one. From its making on, SIGTERM no longer ends the process by itself; make one in
// main. Thread: one; without ddprun only the signal counts.
#pragma once

#include <chrono>
#include <string>

namespace ddprun::trainer {

class StopRequest {
  public:
    // The only place that reads the variable.
    static StopRequest from_environment();

    explicit StopRequest(std::string file);

    // Cheap enough for each step: the file is looked for ten times a second at most. Once true, it
    // stays so.
    bool asked();

  private:
    std::string file_;  // empty: none
    bool asked_ = false;
    std::chrono::steady_clock::time_point look_again_{};
};

}  // namespace ddprun::trainer
