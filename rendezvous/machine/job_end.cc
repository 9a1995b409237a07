// Ends the job: records the end in the ledger, then tells the nodes (PROTOCOL.md, rule 24). Part of
// the rendezvous machine.
#include <algorithm>

#include "base/exit_code.h"
#include "rendezvous/machine/machine_state.h"

namespace ddprun::rendezvous {
namespace {

constexpr Duration kWorthTelling = std::chrono::minutes{10};

}  // namespace

// The job cannot begin. The end waits one lease for nodes that have not connected yet, so that they
// learn why.
bool MachineState::waits_to_tell(Time now, Time since) {
    const auto nodes =
        limits().order.empty() ? limits().max_nodes : static_cast<int>(limits().order.size());
    const auto come = std::ranges::count_if(
        roster.nodes(), [](const auto& each) { return each.second.connected(); });
    const Time heard_by = since + share(lease(), kHearTheEnd);
    if (come + other_version.count() >= nodes || now >= heard_by) return false;
    wake_at(heard_by);
    return true;
}

bool MachineState::is_refused(Time now) {
    if (config.refusal.empty()) return false;
    if (waits_to_tell(now, active.since)) return true;
    end.decide(unavailable(config.refusal));
    propose_end(now);
    return true;
}

// At the start of a Slurm step no further nodes will come.
bool MachineState::too_few_are_usable(Time now) {
    const auto nodes = static_cast<int>(limits().order.size());
    const int lost = unusable.count() + other_version.count();
    if (!begins_allocation() || nodes == 0 || lost == 0 || nodes - lost >= limits().min_nodes)
        return false;
    const UnusableNodes& first = other_version.count() > 0 ? other_version : unusable;
    if (waits_to_tell(now, first.since())) return true;
    Ending ending = unavailable(first.sentence());
    if (&first == &unusable) ending.code = kUsageCode;
    end.decide(std::move(ending));
    propose_end(now);
    return true;
}

void MachineState::propose_end(Time now) {
    LedgerEntry entry;
    // The last generation stays named in the end: a reader of this entry alone knows its number.
    if (top()) entry.assignment = top()->assignment;
    end.complete(now, config.to_day, facts);
    entry.act = EndsJob{*end.ending()};
    propose(now, std::move(entry));
}

// The end is in the ledger, and the job is back in Slurm's queue if it should be.
void MachineState::on_requeued(Time now) {
    if (!top() || !top()->end() || phase == Phase::closed) return;
    Ending recorded = *top()->end();
    recorded.requeue &= end.requeues();
    end.decide(std::move(recorded));
    close(now);
}

void MachineState::close(Time now) {
    phase = Phase::closed;
    end.closes(now, lease());
    say_end(now);
    say_times(now);
    if (top() && !top()->blame.nodes.empty())
        note(Note::Level::warn,
             "some nodes caused repeated failures; " + exclude_option(top()->blame));
    for (auto& [id, node] : roster.nodes()) tell_end(node);
}

// A job that has not succeeded is reported by each node, so only a success is said here. After a
// lost node it is the only place that tells: srun exits with 1 then, whatever the job's result is
// (Slurm 23.02).
void MachineState::say_end(Time now) {
    const Ending& with = *end.ending();
    const std::int64_t generations = newest().value + 1;
    note(with.verdict == Verdict::succeeded ? Note::Level::info : Note::Level::debug,
         "the job has ended after " + to_text(now - began) + ", " + std::to_string(generations) +
             (generations == 1 ? " generation" : " generations") + ", exit code " +
             std::to_string(with.code) + ": " + with.sentence);
}

// A short job without a restart has nothing to tell.
void MachineState::say_times(Time now) {
    const auto& last = top();
    if (!last || (last->restart.totals.restarts == 0 && now - began < kWorthTelling)) return;
    for (const std::string& line : time_lines(*last)) note(Note::Level::info, line);
    if (last->restart.totals.restarts == 0) return;
    note(Note::Level::info, summary_of(last->restart.totals));
    for (const std::string& line : phases_of(last->restart.totals)) note(Note::Level::debug, line);
}

void MachineState::tell_end(NodeState& node) {
    if (!node.session) return;
    node.told_end = true;
    send(*node.session, Finished{*end.ending()});
}

// Members that are disconnected get one lease to connect again and hear the verdict. The time
// counts from when they were last heard, or from the start of this activation.
void MachineState::closed(Time now) {
    if (end.is_told()) return;
    Time until = kLongAgo;
    if (top() && !single())
        for (const Member& member : top()->assignment.members) {
            const NodeState* node = roster.find(member.node);
            if (roster.gone(member.node) || (node ? node->told_end : !config.succession)) continue;
            const Time heard = std::max(node ? node->beat_came : kLongAgo, active.since);
            until = std::max(until, end.waits_until(heard, lease()));
        }
    if (now < until) return wake_at(until);
    end.told();
    out.add(Closed{*end.ending()});
}

}  // namespace ddprun::rendezvous
