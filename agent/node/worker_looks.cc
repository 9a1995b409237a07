// Connects the watch for a standstill and the stacks of workers with the machine.
#include "agent/node/worker_looks.h"

#include <utility>

#include "agent/stacks/process_stack.h"

namespace ddprun::agent {

WorkerLooks::WorkerLooks(boost::asio::io_context& loop, Workers workers, Post post,
                         StillWatch::Say say)
    : loop_(loop),
      workers_(std::move(workers)),
      post_(std::move(post)),
      still_(
          loop,
          [this] {
              const WorkerSet* set = workers_();
              return set ? set->watched() : WatchedWorkers();
          },
          [this](Generation generation, std::vector<rendezvous::Still> kinds) {
              post_(WorkersStill{generation, std::move(kinds)});
          },
          std::move(say)) {}

// The stacks come later, so the machine gets everything in one event.
void WorkerLooks::examine(const ExamineWorkers& asked) {
    const WorkerSet* set = workers_();
    if (!set) return;
    add_stacks(loop_, set->living(asked.local_ranks),
               [this, alive = std::weak_ptr(alive_),
                generation = asked.generation](std::vector<rendezvous::WorkerOutcome> outcomes) {
                   if (alive.lock()) post_(WorkersExamined{generation, std::move(outcomes)});
               });
}

}  // namespace ddprun::agent
