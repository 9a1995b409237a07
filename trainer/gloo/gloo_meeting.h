// GlooMeeting: the time from the first word of a rank in the store until all ranks are connected.
// One deadline holds for all of it, and the error says which ranks are missing, and where they are.
//
// Gloo connects to one rank after the other, with a time limit for each, and a rank that waits for
// a hanging one keeps others waiting. So a thread waits meanwhile, over a connection of its own to
// the store, for the deadline or for the word of a rank that gives up. It then closes Gloo's
// connections, which ends this rank's waits, and says in the store that this rank is alive. The
// first rank that gives up takes those that say nothing for the missing ones, not the one for which
// it happened to wait, and all ranks report what it found. So all end at once, and name the same
// ranks.
//
// Keys in the group's store:
//   gloo/addresses/R   host name of rank R, and its address for each other rank
//   gloo/meeting/R     ends the waiting of rank R: it is connected, or another rank has given up
//   gloo/failed        counter: how many ranks have given up
//   gloo/alive/R       rank R is there
//   gloo/verdict       what the first rank that gave up has found
//
// Threads: one, beside its own. Errors: timed_out, with the missing ranks; closed, unavailable.
#pragma once

#include <gloo/context.h>
#include <gloo/transport/device.h>

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/system/start_thread.h"
#include "trainer/worker/context.h"
#include "trainer/worker/store.h"

namespace ddprun::trainer {

class GlooMeeting {
  public:
    using Clock = std::chrono::steady_clock;

    // `store` must outlive the meeting. `timeout`: of later calls, and for the messages.
    GlooMeeting(const Context& context, Store& store, Clock::time_point deadline,
                std::chrono::milliseconds timeout);
    ~GlooMeeting();
    GlooMeeting(const GlooMeeting&) = delete;
    GlooMeeting& operator=(const GlooMeeting&) = delete;

    // Opens the connection of the thread, and starts it.
    Result<void> begin();

    // Connects to all ranks. Failures are exceptions of Gloo's, or of the store's.
    std::shared_ptr<::gloo::Context> connect(std::shared_ptr<::gloo::transport::Device> device);

    // What else has to be ended when the meeting is over, for waits after connect(). Called at once
    // if it is over already, and then from the meeting's thread.
    void on_end(std::function<void()> end_waits);

    // The time that is left, at least 1 ms.
    std::chrono::milliseconds left() const;

    // All ranks are connected. Returns the thread's connection to the store.
    std::unique_ptr<Store> close();

    // Where the cause of a failure is looked for.
    enum class Cause {
        here,       // it is known: this rank cannot begin
        elsewhere,  // ranks may be missing
    };
    // Gives up, tells the other ranks, and composes the error.
    Error failure(const Error& reason, Cause cause);

  private:
    class Mesh;
    void wait_for_end();
    void end_waits();
    void throw_if_over();
    std::vector<char> read_addresses(int other);
    std::vector<int> silent_ranks();
    Error tell_others(const Error& reason, Cause cause);
    Error hear_verdict(const Error& reason);
    std::string with_rank(const std::string& sentence) const;
    std::string name_missing(const std::vector<int>& ranks) const;

    const Context& context_;
    Store& store_;
    const Clock::time_point deadline_;
    const std::chrono::milliseconds timeout_;
    std::unique_ptr<Store> own_;
    Thread waiting_;
    std::shared_ptr<Mesh> mesh_;
    std::vector<std::string> places_;  // of each rank that has come: host name and address
    std::mutex mutex_;                 // of those below
    bool over_ = false;
    std::function<void()> end_waits_;
};

// Carries an error of the store through code that knows only exceptions.
struct StoreFailure : std::runtime_error {
    explicit StoreFailure(Error e) : std::runtime_error(e.sentence()), error(std::move(e)) {}
    Error error;
};

}  // namespace ddprun::trainer
