// StopRequest: whether the launcher wants this worker to stop. The request is a SIGTERM, or a file
// that ddprun makes before it sends a signal. The variable DDPRUN_STOP_FILE names the file, which
// says why the worker has to stop and how much time it has.
//
// This is what one rank knows. At the end of each step all ranks should agree on it (any_rank() in
// trainer/training/agreement.h), so that all stop after the same step. Make the object in main:
// from then on SIGTERM no longer ends the process. Thread: one. Under another launcher there is no
// file, and only the signal counts.
#pragma once

#include <chrono>
#include <string>

namespace ddprun::trainer {

class StopRequest {
  public:
    // Uses the variable. Nothing else in the library reads it.
    static StopRequest from_environment();

    // `file`: path of the file, or empty. Installs the handler for SIGTERM.
    explicit StopRequest(std::string file);

    // Whether to stop. Once true, it stays true. It is cheap enough for each step: it looks for the
    // file at most ten times a second.
    bool asked();

  private:
    std::string file_;  // empty: there is none
    bool asked_ = false;
    std::chrono::steady_clock::time_point look_again_{};
};

}  // namespace ddprun::trainer
