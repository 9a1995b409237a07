// SnapshotRequest: whether the launcher wants a snapshot while the training goes on. ddprun makes
// the file that DDPRUN_SNAPSHOT_FILE names, with the number of the request; whoever has begun the
// snapshot removes it.
//
// This is what one rank knows: the file of another node may appear some steps later. So the ranks
// agree on the highest number at the end of a step (asked_of_any(), trainer/training/agreement.h),
// and a file with a number that has been done is removed without another snapshot. Thread: one.
// Under another launcher there is no file, and nobody asks.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace ddprun::trainer {

class SnapshotRequest {
  public:
    // Uses the variable. Nothing else in the library reads it.
    static SnapshotRequest from_environment();

    // `file`: path of the file, or empty.
    explicit SnapshotRequest(std::string file) : file_(std::move(file)) {}

    // The number of the request, above 0; 0: nothing new is asked. It is cheap enough for each
    // step: it looks for the file at most ten times a second.
    std::int64_t asked();

    // All ranks begin the snapshot that this request wants: call it just before. Removes the file
    // if it holds no newer request.
    void begun(std::int64_t number);

  private:
    void look();

    std::string file_;        // empty: there is none
    std::int64_t seen_ = 0;   // in the file
    std::int64_t begun_ = 0;  // the newest that was begun
    std::chrono::steady_clock::time_point look_again_{};
};

}  // namespace ddprun::trainer
