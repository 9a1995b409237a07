// MpiSession: MPI in this process, shared by its groups. The first group initialises MPI, unless
// the program has; then the last one finalises it. A process can do so once.
//
// After the failure of a group nothing of MPI is called any more in this process, and it is never
// finalised: a request that has not ended cannot be taken back, and the lost rank would be waited
// for. So MPI writes to no buffer of a call that has failed.
//
// Threads: any; one call of MPI at a time.
#pragma once

#include <mpi.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>

#include "base/error.h"
#include "trainer/worker/context.h"

namespace ddprun::trainer {

class MpiSession {
  public:
    // The session of this process. All ranks call it; while MPI is initialised it waits for them
    // without an end of its own. Errors: refused: MPI counts other ranks than the context, has been
    // finalised, or was initialised for one thread; closed: a group has failed.
    // `end`: how long MPI_Finalize() may take; the session of the first group decides.
    static Result<std::shared_ptr<MpiSession>> open(const Context& context,
                                                    std::chrono::milliseconds end);
    // Finalises MPI, or ends the process (end_watch.h).
    ~MpiSession();
    MpiSession(const MpiSession&) = delete;
    MpiSession& operator=(const MpiSession&) = delete;

    // What open() refuses or closes before it waits for anybody.
    static Result<void> may_begin();

    // Whether this session has initialised MPI, and so finalises it.
    bool is_ours() const { return ours_; }

    // Calls MPI: `function` returns one of its codes. Errors: closed: a group of this process has
    // failed; refused: the ranks give messages of other sizes; unavailable.
    template <class Function>
    Result<void> call(const Function& function) {
        std::lock_guard lock(mutex_);
        if (given_up_) return no_more();
        const int code = function();
        if (code == MPI_SUCCESS) return {};
        return error_of(code);
    }

    // No more MPI in this process. Any thread, any number of times; does not wait.
    static void give_up() { given_up_ = true; }

  private:
    MpiSession(bool ours, std::chrono::milliseconds end) : ours_(ours), end_(end) {}
    Result<void> check_place(const Context& context);
    static Error no_more();
    static Error error_of(int code);

    static std::atomic<bool> given_up_;
    const bool ours_;
    const std::chrono::milliseconds end_;
    std::mutex mutex_;
};

}  // namespace ddprun::trainer
