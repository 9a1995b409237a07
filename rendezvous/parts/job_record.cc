// Carries the job's past from entry to entry (job_record.h).
#include "rendezvous/parts/job_record.h"

#include <algorithm>

#include "rendezvous/model/node_name.h"

namespace ddprun::rendezvous {

void JobRecord::adopt(const LedgerEntry& entry, bool same) {
    if (!same) forget_generation();
    // An end has counted the start of its generation, which a later entry must not count again.
    if (!same || entry.end())
        times_.began(entry.assignment.generation, kNever, entry.restart.totals);
    adopt(entry.blame);
    limits_.adopt(entry.limits);
    history_.restarts = entry.assignment.restarts;
    history_.met |= entry.met;
    history_.in_a_row = entry.in_a_row;
    history_.last_cause = entry.last_cause;
}

std::vector<std::string> JobRecord::began(const LedgerEntry& entry) {
    std::vector<std::string> said;
    const std::vector<Member>& members = entry.assignment.members;
    for (const std::string& node : entry.blame.nodes) {
        if (std::find(blame_.nodes.begin(), blame_.nodes.end(), node) != blame_.nodes.end())
            continue;
        // The blamed host is no member of the new generation: a spare took its place.
        const bool replaced = std::none_of(members.begin(), members.end(), [&](const Member& each) {
            return host_of(each.node.name) == node;
        });
        said.push_back(blame_sentence(entry.blame, node, replaced) + "; " +
                       exclude_option(entry.blame));
    }
    adopt(entry.blame);
    forget_generation();
    times_.began(entry.assignment.generation,
                 proposed_.first == entry.random ? proposed_.second : kNever, entry.restart.totals);
    return said;
}

TimeFacts JobRecord::time_facts(Time now, const GenerationFacts& facts) const {
    const auto to_day = [this](Time at) { return to_day_ + at.time_since_epoch(); };
    const Time over = times_.over_at(now);
    TimeFacts known{to_day(now), to_day(began_), now - over};
    known.saves = facts.snapshot() >= 0;
    known.saving = facts.saving();
    known.reached = times_.reached();
    if (facts.saved_at() > kLongAgo) known.unsaved = std::max(over - facts.saved_at(), Duration{});
    return known;
}

void JobRecord::write(LedgerEntry& entry, Time now, const LedgerEntry* newest, const Blame& blame,
                      const GenerationFacts& facts) {
    history_.met |= facts.reach() >= Reach::met;
    entry.met = history_.met;
    entry.in_a_row = history_.in_a_row;
    entry.last_cause = history_.last_cause;
    entry.blame = blame;
    entry.blame.drained = {drained_.begin(), drained_.end()};
    entry.limits = limits_.to_record();
    const bool generation = entry.makes_generation();
    std::optional<RestartCause> restart;
    if (generation && newest && newest->assignment.generation != kNoGeneration)
        restart = entry.requeue != newest->requeue ? RestartCause::requeue : cause_kind_;
    // A takeover only repeats the sums: its generation goes on, and nothing was lost. So does the
    // begin of an allocation, which is no restart yet.
    entry.restart = entry.takes_over() || entry.allocation() ? RestartRecord{{}, times_.totals()}
                                                             : times_.record(now, restart);
    entry.time = time_until(entry, newest, time_facts(now, facts));
    // The entry may come back later as won; its random number then tells that this proposal made
    // it.
    if (generation) proposed_ = {entry.random, now};
}

// A job on one host cannot replace the host, so blame would have no effect.
Blame JobRecord::blame(const LedgerEntry& newest, const GenerationFacts& facts,
                       const Limits& limits) const {
    const auto& interrupted = facts.interrupted();
    std::string cause = culprit_;
    if (cause.empty() && interrupted && interrupted->what.blame) cause = interrupted->what.node;
    if (!limits.blame || cause.empty()) return blame_;
    const std::vector<Member>& members = newest.assignment.members;
    const std::string first = host_of(members.front().node.name);
    if (std::ranges::all_of(members,
                            [&](const Member& each) { return host_of(each.node.name) == first; }))
        return blame_;
    return with_cause(blame_, {newest.assignment.generation, cause});
}

void JobRecord::adopt(const Blame& recorded) {
    blame_ = recorded;
    drained_.insert(recorded.drained.begin(), recorded.drained.end());
}

// With ten thousand nodes and nobody drained, no name is cut.
bool JobRecord::is_drained(const std::string& node) const {
    return !drained_.empty() && drained_.contains(host_of(node));
}

void JobRecord::forget_generation() {
    culprit_.clear();
    judged_ = false;
}

}  // namespace ddprun::rendezvous
