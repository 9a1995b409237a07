// Counts starts, ends, contacts and progress of the workers (node_workers.h).
#include "agent/parts/node_workers.h"

#include <algorithm>

#include "base/error.h"
#include "rendezvous/rules/hang.h"

namespace ddprun::agent {

bool NodeWorkers::started(Time now) {
    if (++started_ < count()) return false;
    all_started_at_ = now;
    return true;
}

bool NodeWorkers::ended(int local_rank, Time now) {
    worker(local_rank).ended = true;
    if (++ended_ < count()) return false;
    all_ended_at_ = now;
    return true;
}

void NodeWorkers::progressed(int local_rank, std::int64_t step, Time now) {
    // Steps only grow, in whatever order the reports of the workers come.
    step_ = std::max(step_, step);
    std::int64_t& known = worker(local_rank).step;
    known = std::max(known, step);
    // The first report of any worker ends the restart's last phase (marks()).
    if (++reports_ == 1) first_report_at_ = now;
    reported_at_ = now;
}

void NodeWorkers::saving(int local_rank, Duration took) {
    Duration& known = worker(local_rank).saving;
    known = std::max(known, took);
}

Duration NodeWorkers::saving() const {
    Duration longest{};
    for (const Worker& worker : workers_) longest = std::max(longest, worker.saving);
    return longest;
}

bool NodeWorkers::in_contact(Time now) {
    if (first_contact_at_ != kNever) return false;
    first_contact_at_ = now;
    return true;
}

// The Beat has an age and not a time, because each node has a clock of its own. marks() does the
// same.
void NodeWorkers::tell(rendezvous::Beat& beat, Time now) const {
    beat.step = step_;
    beat.reports = reports_;
    if (reports_ > 0) beat.reported = now - reported_at_;
    beat.saving = saving();
    beat.slowest = slowest();
    beat.still = still_;
    beat.pace = pace_;
}

std::vector<rendezvous::Mark> NodeWorkers::marks(Time now) const {
    using enum rendezvous::RestartPhase;
    std::vector<rendezvous::Mark> passed;
    const auto add = [&](rendezvous::RestartPhase phase, Time at) {
        // A phase that has not ended has kNever, which is never reached.
        if (at <= now) passed.push_back({phase, now - at});
    };
    add(rendezvous::RestartPhase::started, all_started_at_);
    add(contact, first_contact_at_);
    add(progress, first_report_at_);
    return passed;
}

NodeWorkers::Worker& NodeWorkers::worker(int local_rank) {
    DDPRUN_CHECK(local_rank >= 0 && local_rank < count(), "no worker of this node");
    return workers_[static_cast<std::size_t>(local_rank)];
}

std::vector<rendezvous::RankStep> NodeWorkers::slowest() const {
    std::vector<rendezvous::RankStep> living;
    for (int i = 0; i < count(); ++i) {
        // A worker that has ended makes no progress and would always be the slowest.
        const Worker& worker = workers_[static_cast<std::size_t>(i)];
        if (!worker.ended) living.push_back({first_rank_ + i, worker.step});
    }
    std::sort(living.begin(), living.end(), rendezvous::slower);
    // The slowest of the job are among the slowest of their node, so a Beat need not name more.
    if (living.size() > rendezvous::kSlowest) living.resize(rendezvous::kSlowest);
    return living;
}

}  // namespace ddprun::agent
