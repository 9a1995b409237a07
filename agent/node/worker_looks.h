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
#include "agent/standstill/still_watch.h"
#include "agent/workers/worker_set.h"

namespace ddprun::agent {

class WorkerLooks {
  public:
    // The workers of the newest generation; null: none have been started yet.
    using Workers = std::function<const WorkerSet*()>;
    using Post = std::function<void(Event)>;

    // `say` gets a line when the workers cannot be watched.
    WorkerLooks(boost::asio::io_context& loop, Workers workers, Post post, StillWatch::Say say);
    // Finds out where hanging workers are. Answered by WorkersExamined, if any are asked for. What
    // all workers of this node do is kept in the log folder, if there is one.
    void examine(const ExamineWorkers& asked);
    // Looks no more.
    void close();

  private:
    void keep(const WorkerSet& set, std::function<void(const std::string&)> kept);
    void answer(const ExamineWorkers& asked, const std::string& file);
    std::vector<rendezvous::WorkerOutcome> with_calls(
        std::vector<rendezvous::WorkerOutcome> outcomes) const;

    boost::asio::io_context& loop_;
    Workers workers_;
    Post post_;
    StillWatch still_;
    FileThread keeping_;
    bool keeps_ = false;  // what it was asked to before is not finished
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ddprun::agent
