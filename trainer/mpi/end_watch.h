// EndWatch: a deadline for MPI_Finalize(), which has none and no way out. It once hung in the
// network below MPI (UCX over TCP), after all ranks had come to it. A worker that stands there for
// ever costs the job the rest of its time; one that ends is started again and resumes.
//
// Thread: one of its own, while the object lives. Where none is to be had there is no deadline.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "base/system/start_thread.h"

namespace ddprun::trainer {

class EndWatch {
  public:
    // When the time is up, the process ends: with a line on standard error, the launcher's error
    // file, and exit code 1.
    explicit EndWatch(std::chrono::milliseconds limit);
    ~EndWatch();  // in time
    EndWatch(const EndWatch&) = delete;
    EndWatch& operator=(const EndWatch&) = delete;

  private:
    void watch(std::chrono::milliseconds limit);

    std::mutex mutex_;
    std::condition_variable changed_;
    bool in_time_ = false;
    Thread thread_;
};

}  // namespace ddprun::trainer
