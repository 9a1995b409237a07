// Calls the user's --on-event program with each event of the job, while this node leads.
//
// The job never waits for it. The program runs beside the job, one call at a time, and is killed
// after 30 s. Meanwhile 100 events wait; of more the oldest are left out, and the next one says how
// many ("left_out"). While a killed program hangs in the kernel, all events are left out. At the
// end of the job the calls that are due have 20 s together. Then all events but the end are left
// out, and the end is told as soon as the call that runs has ended, which is within 30 s of its
// start.
//
// Events are what has changed between two looks at the job, four times a second. A node that
// becomes the leader begins with how the job stands. Their texts are handed in
// (operator/control/job_events.h).
//
// Thread: the loop's.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/loop/child_program.h"
#include "rendezvous/model/job_status.h"
#include "rendezvous/model/model.h"

namespace ddprun::launcher {

struct EventLimits {
    Duration call = std::chrono::seconds{30};
    // At the end: all calls that are due; and one call, after that.
    Duration due = std::chrono::seconds{20}, last = std::chrono::seconds{10};
};

class EventProgram {
  public:
    using Look = std::function<std::optional<rendezvous::JobStatus>()>;  // nothing: another leads
    // The events since the look before, as JSON; `job` null: the next look is the first one. `now`:
    // since 1970.
    using Texts = std::function<std::vector<std::string>(
        const rendezvous::JobStatus* job, const std::optional<rendezvous::Ending>& ending,
        Duration now)>;
    using Warn = std::function<void(const std::string&)>;

    // Nothing is done before begin().
    EventProgram(boost::asio::io_context& loop, std::string program, Look look, Texts texts,
                 Warn warn, const EventLimits& limits = {});
    void begin();
    // The job has ended. The loop must not be running; this runs it until the last call has ended.
    void finish(const rendezvous::Ending& ending);

  private:
    void arm();
    void look(const std::optional<rendezvous::Ending>& ending);
    void call_next();
    void called(const Result<ProgramResult>& result);
    bool is_idle() const;  // nothing waits, and no call runs

    boost::asio::io_context& loop_;
    const std::string program_;
    Look look_;
    Texts texts_;
    Warn warn_;
    const EventLimits limits_;
    boost::asio::steady_timer timer_;
    std::deque<std::string> waiting_;
    int left_out_ = 0;
    bool calling_ = false;
    bool warned_ = false;
    bool ends_ = false;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ddprun::launcher
