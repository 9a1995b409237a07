// The one place that starts threads. The system may refuse one (`ulimit -u`, `ulimit -v`, the pids
// limit of a cgroup), which std::thread tells by an exception; in a constructor or on the way of an
// error that ends the process.
#pragma once

#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "base/error.h"

namespace ddprun {

// A thread that start_thread() has started, or none. As with std::thread, one that is neither
// joined nor detached must not be destroyed.
class Thread {
  public:
    Thread() = default;

    bool joinable() const { return thread_.joinable(); }
    void join() { thread_.join(); }
    void detach() { thread_.detach(); }

  private:
    template <class Work>
    friend Result<Thread> start_thread(const std::string& what, Work work);
    explicit Thread(std::thread thread) : thread_(std::move(thread)) {}

    std::thread thread_;
};

// `what` the thread is for, as the error says it. Errors: unavailable.
template <class Work>
Result<Thread> start_thread(const std::string& what, Work work) {
    try {
        return Thread(std::thread(std::move(work)));
    } catch (const std::system_error& error) {
        return Error(ErrorCode::unavailable,
                     "no thread to be had for " + what + ": " + error.code().message() +
                         " (ulimit -u, ulimit -v, the pids limit of the cgroup)");
    }
}

}  // namespace ddprun
