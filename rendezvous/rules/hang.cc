// Finds the slowest workers of a hung generation (hang.h).
#include "rendezvous/rules/hang.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "rendezvous/model/durations.h"

namespace ddprun::rendezvous {
namespace {

// A rank that never reported a step sorts last: its step is unknown, not 0.
std::pair<std::int64_t, int> key(std::int64_t step, int rank) {
    return {step < 0 ? std::numeric_limits<std::int64_t>::max() : step, rank};
}

}  // namespace

bool slower(const RankStep& a, const RankStep& b) {
    return key(a.step, a.rank) < key(b.step, b.rank);
}

Slowest find_slowest(const std::vector<NodeSteps>& nodes) {
    std::vector<Slow> all;
    for (const NodeSteps& node : nodes)
        for (const RankStep& each : node.slowest)
            all.push_back(
                {node.member.node, each.rank, each.rank - node.member.rank_offset, each.step});
    std::sort(all.begin(), all.end(), [](const Slow& a, const Slow& b) {
        return key(a.step, a.rank) < key(b.step, b.rank);
    });
    Slowest found;
    found.workers.assign(all.begin(),
                         all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), kSlowest)));
    // Without any step there is nothing to compare, so no node gets the blame.
    if (all.empty() || all.front().step < 0) return found;
    bool others = false, ahead = true;
    for (const Slow& slow : all) {
        if (slow.node == all.front().node) continue;
        others = true;
        ahead &= slow.step > all.front().step;
    }
    found.one_node = others && ahead;
    return found;
}

std::string hang_option(const Limits& limits) {
    return "--hang-timeout " + (limits.hang_auto ? "auto" : to_text(limits.hang_timeout));
}

Time hangs_at(Time newest_report, const Limits& limits) {
    return newest_report + limits.hang_timeout + share(limits.times.lease, kStall);
}

void add_stack(WorkerOutcome& outcome, const std::string& who, const WorkerOutcome* answer) {
    outcome.stack.push_back(who + (answer ? ":" : ": its node has not answered"));
    if (!answer) return;
    for (const std::string& line : answer->stack) outcome.stack.push_back("    " + line);
}

std::string place_of(const Slow& slow) {
    return "rank " + std::to_string(slow.rank) + " (local " + std::to_string(slow.local_rank) +
           " on " + slow.node.name + "), " +
           (slow.step < 0 ? "which has reported no step" : "at step " + std::to_string(slow.step));
}

std::string hang_sentence(Duration silent, const Limits& limits, const Slowest& slowest) {
    return "no rank has made progress for " + to_text(silent) + " (" + hang_option(limits) + ")" +
           (slowest.workers.empty() ? "" : "; the slowest is " + place_of(slowest.workers.front()));
}

std::string unjudged_sentence(Duration run, const Limits& limits) {
    return "no rank has reported progress in " + to_text(run) + ", so " + hang_option(limits) +
           " ends the job only if all its workers stand still in collectives of Gloo; to have it "
           "judged by its steps, let the program write a line such as step=17 to the descriptor "
           "that DDPRUN_PROGRESS_FD names";
}

}  // namespace ddprun::rendezvous
