// Completes the end of the job with its time and a lost node (job_end.h).
#include "rendezvous/parts/job_end.h"

namespace ddprun::rendezvous {

// If the loss of a node ended the last generation and the job could not go on, then the loss is the
// cause in the report. The failures of other workers become its consequences.
void JobEnd::complete(Time now, Duration to_day, const GenerationFacts& facts) {
    Ending& ending = *ending_;
    if (ending.at == Duration{}) ending.at = to_day + now.time_since_epoch();
    const auto& interrupted = facts.interrupted();
    if (ending.loss || !interrupted || interrupted->what.node.empty()) return;
    const NodeLoss loss{interrupted->what.node, interrupted->what.sentence};
    if (ending.verdict == Verdict::worker_failed) ending.loss = loss;  // came with it
    if (ending.verdict != Verdict::unavailable) return;
    ending.loss = loss;
    ending.at = to_day + interrupted->at.time_since_epoch();
    ending.generation = facts.generation();
    facts.failure().tell_as_consequences(ending, interrupted->at);
}

}  // namespace ddprun::rendezvous
