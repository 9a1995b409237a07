// Finds the worker that is meant, and answers from what is known of it (operator_answers.h).
#include "agent/node/operator_answers.h"

#include <algorithm>
#include <string>
#include <utility>

#include "agent/output/recent_output.h"

namespace ddprun::agent {
namespace {

using rendezvous::WorkerAsked;

// Names of threads and functions are the worker's own.
constexpr std::size_t kMostLines = 4000, kLongestLine = 400;

Error unavailable(std::string sentence) { return {ErrorCode::unavailable, std::move(sentence)}; }

Result<WorkerSet::Seen> find(const WorkerSet* set, const WorkerAsked& asked) {
    const std::string rank = "rank " + std::to_string(asked.rank);
    if (!set || set->generation() < asked.generation)
        return unavailable("this node has not started " + rank + " of generation " +
                           std::to_string(asked.generation.value) + " yet");
    const auto seen = set->find(asked.rank);
    if (!seen)
        return Error(ErrorCode::not_found, "this node does not run " + rank + " in generation " +
                                               std::to_string(set->generation().value));
    return *seen;
}

void cut(Diagnosis::Lines& lines) {
    for (std::string& line : lines)
        if (line.size() > kLongestLine) line = line.substr(0, kLongestLine) + "…";
    if (lines.size() <= kMostLines) return;
    lines.resize(kMostLines);
    lines.push_back("…");
}

}  // namespace

rendezvous::OwnWorkers operator_answers(std::function<const WorkerSet*()> workers,
                                        Diagnosis& diagnosis) {
    rendezvous::OwnWorkers answers;
    answers.read = [workers](const WorkerAsked& asked, std::size_t lines,
                             std::function<void()> more) -> Result<rendezvous::ReadWorker> {
        const WorkerSet* set = workers();
        const auto seen = find(set, asked);
        if (!seen) return seen.error();
        if (!seen->text) return unavailable("the worker is just being started");
        return rendezvous::ReadWorker{
            set->generation(), std::make_unique<OutputReader>(seen->text, lines, std::move(more))};
    };
    answers.look = [workers, &diagnosis](const WorkerAsked& asked, auto done) {
        const WorkerSet* set = workers();
        const auto seen = find(set, asked);
        if (!seen) return done(seen.error());
        if (seen->has_ended)
            return done(Error(ErrorCode::not_found,
                              "rank " + std::to_string(asked.rank) + " of generation " +
                                  std::to_string(set->generation().value) + " has ended"));
        if (seen->pid == 0) return done(unavailable("the worker is just being started"));
        diagnosis.look(seen->index, seen->pid,
                       [generation = set->generation(), pid = seen->pid,
                        done = std::move(done)](Diagnosis::Lines lines) {
                           cut(lines);
                           done(rendezvous::WorkerStacks{generation, pid, std::move(lines)});
                       });
    };
    return answers;
}

}  // namespace ddprun::agent
