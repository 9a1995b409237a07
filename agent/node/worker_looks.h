// Looks at living workers from outside: once a second whether they stand still, and where they are
// when the leader asks. What is seen becomes an event of the agent's machine.
//
// Thread: the loop's. Owner: the runner.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "agent/machine/events.h"
#include "agent/recorder/flight_recorders.h"
#include "agent/standstill/still_watch.h"
#include "agent/workers/worker_set.h"

namespace ddprun::agent {

class WorkerLooks {
  public:
    // The workers of the newest generation; null: none have been started yet.
    using Workers = std::function<const WorkerSet*()>;
    using Post = std::function<void(Event)>;

    // `say` gets a line when the workers cannot be watched.
    WorkerLooks(boost::asio::io_context& loop, Workers workers, FlightRecorders& recorders,
                Post post, StillWatch::Say say);
    // Finds out where hanging workers are, and what all of this node have recorded. Answered by
    // WorkersExamined. What all do is kept in the log folder, if there is one.
    void examine(const ExamineWorkers& asked);
    // Looks no more.
    void close();

  private:
    void keep(const WorkerSet& set, std::function<void(const std::string&)> kept);
    // Of all workers of this node.
    struct Found {
        std::string file;  // where it is kept what they do; empty: nowhere
        std::vector<rendezvous::RecordedCalls> recorded;
    };
    void answer(const ExamineWorkers& asked, const Found& found);
    std::vector<rendezvous::WorkerOutcome> with_calls(
        std::vector<rendezvous::WorkerOutcome> outcomes) const;

    boost::asio::io_context& loop_;
    Workers workers_;
    FlightRecorders& recorders_;
    Post post_;
    StillWatch still_;
    FileThread keeping_;
    bool keeps_ = false;  // what it was asked to before is not finished
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ddprun::agent
