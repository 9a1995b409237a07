// Finds out that a generation makes no progress, and which worker is the slowest (hang_watch.h).
#include "rendezvous/hangs/hang_watch.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "rendezvous/model/durations.h"

namespace ddprun::rendezvous {
namespace {

constexpr auto kExamined = std::chrono::seconds{10};  // until a node must have answered

}  // namespace

// Beats repeat the newest report. Only a higher number is new progress.
void HangWatch::heard(Time now, const NodeId& node, const Beat& beat) {
    std::int64_t& known = reports_[node];
    if (beat.reports <= known) return;
    known = beat.reports;
    const Time before = std::exchange(reported_at_, std::max(reported_at_, now - beat.reported));
    if (before != kLongAgo) longest_ = std::max(longest_, reported_at_ - before);
}

void HangWatch::forget() {
    const Duration longest = longest_;
    *this = HangWatch();
    longest_ = longest;
}

Time HangWatch::looks_at(const Limits& limits) const {
    const Time at = hangs_at(reported_at_, limits);
    return limits.hang_auto ? std::max(at, reported_at_ + 2 * longest_) : at;
}

bool HangWatch::resumed() {
    if (!examining_ || reported_at_ <= examining_->reported) return false;
    examining_.reset();
    return true;
}

// A leader that looks this late has stood still itself, and it has not handled the Beats that carry
// reports. It starts the count again.
bool HangWatch::is_due(Time now, const Limits& limits) {
    const Time at = looks_at(limits);
    if (now < at) return false;
    if (now <= at + share(limits.times.lease, kStoodStill)) return true;
    reported_at_ = now;
    return false;
}

std::map<NodeId, std::vector<int>> HangWatch::examine(Time now,
                                                      const std::vector<NodeSteps>& nodes) {
    examining_ = Examination{reported_at_, now + kExamined, find_slowest(nodes), {}, {}, {}};
    std::map<NodeId, std::vector<int>> ranks;
    for (const Slow& slow : examining_->slowest.workers) ranks[slow.node].push_back(slow.rank);
    for (const NodeSteps& node : nodes) examining_->asked.insert(node.member.node);
    return ranks;
}

void HangWatch::answered(const NodeId& node, const Report& report) {
    if (!examining_ || !examining_->asked.contains(node)) return;
    for (const WorkerOutcome& outcome : report.outcomes)
        if (outcome.hung) examining_->seen[outcome.rank] = outcome;
    examining_->recorded.insert(examining_->recorded.end(), report.recorded.begin(),
                                report.recorded.end());
    examining_->asked.erase(node);
}

bool HangWatch::is_complete(Time now) const {
    return examining_->asked.empty() || now >= examining_->until;
}

// Makes one outcome for the whole generation: the slowest worker, with the stacks of all examined
// workers, since they may wait for each other.
HangWatch::Hung HangWatch::take(Time now, const Limits& limits, int world_size,
                                const RankName& name) {
    const Examination found = std::move(*examining_);
    examining_.reset();
    const std::vector<Slow>& slowest = found.slowest.workers;
    Hung hung{
        .node = {}, .to_blame = found.slowest.one_node, .outcome = {}, .since = found.reported};
    WorkerOutcome& outcome = hung.outcome;
    for (const Slow& slow : slowest) {
        const auto seen = found.seen.find(slow.rank);
        const bool answered = seen != found.seen.end();
        add_stack(outcome, place_of(slow), answered ? &seen->second : nullptr);
        if (!answered || slow != slowest.front()) continue;
        outcome.pid = seen->second.pid;
        outcome.tail = seen->second.tail;
    }
    if (!slowest.empty()) {
        hung.node = slowest.front().node.name;
        outcome.rank = slowest.front().rank;
        outcome.local_rank = slowest.front().local_rank;
    }
    outcome.hung = true;
    outcome.sentence = hang_sentence(now - found.reported, limits, found.slowest) +
                       nccl_sentence(found.seen) +
                       recorded_sentence(found.recorded, world_size, name);
    return hung;
}

}  // namespace ddprun::rendezvous
