// NcclWatch: the thread that watches the calls of a group on NCCL, so that nothing waits forever
// and no rank has to wait to learn that another one is gone.
//
// It sees the end of calls, calls that take too long, NCCL's own errors, the loss of a neighbour,
// the failure of another rank (in the store), and ranks that wait for each other in different
// calls. The first failure ends the group: the watch tells the other ranks, has the communicator
// aborted, and gives each call that was not over its error.
//
// Threads: begin(), launched() and fail() from the caller's; abort() from any; ending() from any.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "base/system/start_thread.h"
#include "base/system/wake_pipe.h"
#include "trainer/group/call_teller.h"
#include "trainer/group/failure_story.h"
#include "trainer/group/neighbours.h"
#include "trainer/group/other_groups.h"
#include "trainer/nccl/calls_in_flight.h"
#include "trainer/nccl/flight.h"

namespace ddprun::trainer {

class NcclWatch {
  public:
    // The group that is watched.
    struct Group {
        int rank = 0, size = 1, gpu = 0;
        std::chrono::milliseconds timeout{};
        std::function<std::optional<Error>()> nccl_error;
        std::function<void()> cut;               // aborts the communicator; does not wait
        std::function<void(const Error&)> over;  // gets the error that ends the group
        std::function<std::string()> name;       // asked when it has calls
        JobRanks job_ranks = {};
    };

    // `store` is the watch's own connection. The teller is used by the watch alone from now on.
    // Errors: unavailable (threads, descriptors).
    static Result<std::unique_ptr<NcclWatch>> start(Group group, std::unique_ptr<Store> store,
                                                    Neighbours neighbours, CallTeller& teller);
    // Waits for the calls that are under way, which end or fail. Then says goodbye to the
    // neighbours.
    ~NcclWatch();
    NcclWatch(const NcclWatch&) = delete;
    NcclWatch& operator=(const NcclWatch&) = delete;

    // A call begins. If the group is over, it has its error already.
    std::shared_ptr<Flight> begin(const Operation& operation);
    // The call could not be launched. It gets its error soon.
    void fail(const std::shared_ptr<Flight>& flight, const Error& error);

    // Ends the group at the program's wish.
    void abort();

    // The group is ending or over: nothing may be launched any more.
    bool ending() const { return ending_; }

  private:
    struct Entry {
        CallsInFlight::Ticket ticket = 0;
        std::shared_ptr<Flight> flight;
    };
    struct Failure {
        Error reason;
        int lost = -1;
        CallsInFlight::Ticket ticket = 0;  // 0: that of no launch
    };

    NcclWatch(Group group, std::unique_ptr<Store> store, Neighbours neighbours, CallTeller& teller,
              WakePipe wake);
    void serve();
    void sleep();
    Result<void> reap();
    std::optional<Failure> look();
    std::optional<Failure> asked();
    std::optional<Error> ask_the_store(Work::Time now);
    void end(const Failure& failure);
    FailureStory::Failure doom(const Failure& failure);
    void tell_oldest();
    std::optional<std::string> long_call();
    bool may_stop();

    const Group group_;
    const std::unique_ptr<Store> store_;
    Neighbours neighbours_;
    CallTeller& teller_;
    FailureStory story_;
    WakePipe wake_;
    std::atomic<bool> ending_{false}, stopping_{false}, abort_asked_{false};

    std::mutex mutex_;  // of the four below
    CallsInFlight calls_;
    std::deque<Entry> flights_;
    std::optional<Failure> reported_;  // a launch that failed
    std::optional<Error> over_;

    OtherGroups others_;
    // The thread's own.
    Work::Time ask_again_{};
    CallsInFlight::Ticket told_ticket_ = 0;
    std::optional<CallTeller::Call> told_;
    Thread thread_;
};

}  // namespace ddprun::trainer
