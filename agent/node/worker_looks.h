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
#include "agent/workers/worker_set.h"
#include "base/error.h"
#include "base/loop/file_thread.h"
#include "diagnosis/recorder/flight_recorders.h"
#include "diagnosis/stacks/process_stack.h"
#include "diagnosis/standstill/still_watch.h"

namespace ddprun::agent {

class WorkerLooks {
  public:
    // The workers of the newest generation; null: none have been started yet.
    using Workers = std::function<const WorkerSet*()>;
    using Post = std::function<void(Event)>;

    using Say = std::function<void(const std::string&)>;

    // `say` gets a line when the workers cannot be watched, `warn` one when what they do cannot be
    // kept.
    WorkerLooks(boost::asio::io_context& loop, Workers workers, FlightRecorders& recorders,
                Post post, Say warn, Say say);
    // Finds out where hanging workers are, and what all of this node have recorded. Answered by
    // WorkersExamined. What all do is kept in the log folder, if there is one.
    void examine(const ExamineWorkers& asked);
    // Where the threads of one worker are, for who asks while the job runs: nothing stops it.
    // `done` is called once from the loop, within two seconds, or never after the end of this
    // object.
    void look(int index, std::int64_t pid, std::function<void(StackLines)> done);
    // Looks no more.
    void close();

  private:
    // What is known of the workers that the leader has asked for, while it is looked for.
    struct Looked {
        Generation generation;
        Time asked_at{};
        std::string file;  // where it is kept what all do; empty: nowhere
        std::vector<rendezvous::RecordedCalls> recorded;  // of all workers of this node
        std::vector<rendezvous::WorkerOutcome> outcomes;
        std::vector<FoundStack> stacks;
        std::vector<std::string> gpus;
        int missing = 3;  // of what is looked for at the same time
    };
    void keep(const WorkerSet& set, std::function<void(const std::string&)> kept);
    void write(Duration patience, std::function<Result<>()> work, std::function<void(bool)> done);
    void say_not_kept(const std::string& why);
    void look_closely(const std::shared_ptr<Looked>& looked, const std::vector<int>& local_ranks);
    void answer(Looked& looked);
    std::vector<rendezvous::WorkerOutcome> with_calls(
        std::vector<rendezvous::WorkerOutcome> outcomes) const;

    boost::asio::io_context& loop_;
    Workers workers_;
    FlightRecorders& recorders_;
    Post post_;
    Say warn_;
    StillWatch still_;
    FileThread keeping_;
    bool keeps_ = false;  // what it was asked to before is not finished
    bool said_not_kept_ = false;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ddprun::agent
