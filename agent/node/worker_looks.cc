// Connects the watch for a standstill and the stacks of workers with the machine.
#include "agent/node/worker_looks.h"

#include <chrono>
#include <numeric>
#include <utility>

#include "agent/stacks/process_stack.h"
#include "agent/standstill/standstill_file.h"

namespace ddprun::agent {
namespace {

// The leader waits for the answer for ten seconds.
constexpr auto kKeptWithin = std::chrono::seconds{2};

}  // namespace

WorkerLooks::WorkerLooks(boost::asio::io_context& loop, Workers workers, FlightRecorders& recorders,
                         Post post, StillWatch::Say say)
    : loop_(loop),
      workers_(std::move(workers)),
      recorders_(recorders),
      post_(std::move(post)),
      still_(
          loop,
          [this] {
              const WorkerSet* set = workers_();
              return set ? set->watched() : WatchedWorkers();
          },
          [this](Generation generation, std::vector<rendezvous::Still> kinds,
                 rendezvous::Pace pace) {
              post_(WorkersStill{generation, std::move(kinds), pace});
          },
          std::move(say)),
      keeping_(loop) {}

// A thread that hangs in /proc or in a file system is left to itself.
void WorkerLooks::close() {
    still_.close();
    keeping_.let_go();
}

// `kept` gets the file, empty if there is none, when all is written: the answer may end the workers.
// A file system that hangs delays it for a moment only.
void WorkerLooks::keep(const WorkerSet& set, std::function<void(const std::string&)> kept) {
    const std::string folder = set.kept_folder();
    if (folder.empty()) return kept({});
    const std::string file = folder + "/" + kStandstillFile;
    if (std::exchange(keeps_, true)) return kept(file);
    std::vector<int> all(set.watched().pids.size());
    std::iota(all.begin(), all.end(), 0);
    keeping_.post_within(
        kKeptWithin,
        [file, workers = with_calls(set.living(all))] { keep_standstill(file, workers); },
        [file, kept = std::move(kept)](bool) { kept(file); });
    // Done in its turn, also after what came too late.
    keeping_.post([] {}, [this] { keeps_ = false; });
}

// A program of the trainer library says itself what it is in; the stack comes after that.
std::vector<rendezvous::WorkerOutcome> WorkerLooks::with_calls(
    std::vector<rendezvous::WorkerOutcome> outcomes) const {
    for (rendezvous::WorkerOutcome& outcome : outcomes) {
        const std::string call = still_.call_of(static_cast<std::size_t>(outcome.local_rank));
        if (!call.empty()) outcome.stack.insert(outcome.stack.begin(), "in " + call);
    }
    return outcomes;
}

void WorkerLooks::examine(const ExamineWorkers& asked) {
    const WorkerSet* set = workers_();
    if (!set) return;
    // Both at once, since each may take its time.
    const auto found = std::make_shared<Found>();
    const auto half = [this, asked, found, left = std::make_shared<int>(2),
                       alive = std::weak_ptr(alive_)] {
        if (--*left == 0 && alive.lock()) answer(asked, *found);
    };
    std::vector<int> ranks;
    for (const auto& [pid, rank] : set->ranks_by_pid()) ranks.push_back(rank);
    recorders_.ask(asked.generation, ranks,
                   [found, half](std::vector<rendezvous::RecordedCalls> recorded) {
                       found->recorded = std::move(recorded);
                       half();
                   });
    keep(*set, [found, half](const std::string& file) {
        found->file = file;
        half();
    });
}

// The stacks come later, so the machine gets everything in one event.
void WorkerLooks::answer(const ExamineWorkers& asked, const Found& found) {
    const WorkerSet* set = workers_();
    if (!set || set->watched().generation != asked.generation) return;
    add_stacks(loop_, set->living(asked.local_ranks),
               [this, found, alive = std::weak_ptr(alive_),
                generation = asked.generation](std::vector<rendezvous::WorkerOutcome> outcomes) {
                   if (!alive.lock()) return;
                   outcomes = with_calls(std::move(outcomes));
                   for (rendezvous::WorkerOutcome& outcome : outcomes)
                       if (!found.file.empty())
                           outcome.stack.push_back("all workers of its node: " + found.file);
                   post_(WorkersExamined{generation, std::move(outcomes), found.recorded});
               });
}

}  // namespace ddprun::agent
