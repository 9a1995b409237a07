// Decides what follows a generation once that is allowed: a restart, a wait for nodes, the next
// generation, or the end of the job. Part of the rendezvous machine.
#include <algorithm>

#include "rendezvous/machine/machine_state.h"

namespace ddprun::rendezvous {
namespace {

std::vector<std::string> names_of(const std::vector<Candidate>& nodes) {
    std::vector<std::string> names;
    for (const Candidate& each : nodes) names.push_back(each.node.name);
    return names;
}

}  // namespace

// Decides what follows the newest generation, as soon as PROTOCOL.md, rule 7 allows it.
void MachineState::follow(Time now) {
    bool by_lease = false;
    if (owes_allocation(now)) return propose_allocation(now);
    if (!may_follow(now, by_lease)) {
        if (begins_allocation()) return await_earlier(now);
        if (claim.may_follow_at() > now) wake_at(claim.may_follow_at());
        // Without evidence nothing may be written to the ledger. The wait must still end at some
        // time.
        const Time give_up = gathering.since() + limits().times.join_timeout + lease();
        if (now < give_up) return wake_at(give_up);
        end.decide(unavailable("no member of generation " + std::to_string(newest().value) +
                               " connected within " + to_text(limits().times.join_timeout) +
                               " (--join-timeout), so nothing proves that it has ended"));
        end.complete(now, config.to_day, facts);
        return close(now);
    }
    const bool open = facts.failure() && !record.is_judged() && !end.is_decided();
    if (open && may_be_stop(now)) return;
    if (open) decide_failure();
    if (end.is_decided()) return propose_end(now);
    gather(now, by_lease);
}

// Whether the failure is a consequence of a lost node or of another earlier event (PROTOCOL.md,
// rule 15). Then it uses up no restart.
bool MachineState::is_explained() {
    const auto cause = cause_before_failure(facts, absent_members(), beat_period());
    if (!cause) return false;
    facts.interrupt(cause->what, cause->at);
    record.next_because(cause->what.sentence);
    note(cause->what.node.empty() ? Note::Level::debug : Note::Level::warn,
         cause->what.sentence + "; that is the first cause, so no restart is used up");
    return true;
}

void MachineState::decide_failure() {
    // Set first: whatever the result is, one failure is judged once.
    record.judged();
    if (is_explained()) return;
    const FirstFailure& failure = facts.failure();
    if (!failure.outcome().hung) record.ended_by(failure.node());
    RestartDecision decision = record.decide(failure.outcome(), facts.reach(), limits());
    // No other node can come to a job of one node.
    if (decision.restart && single() && unusable.count() > 0)
        decision = {false, "no restart: " + unusable.sentence()};
    if (decision.restart) {
        // The failure itself was logged when the generation ended.
        note(Note::Level::warn, decision.sentence);
        // Without a restart, the report has it.
        for (const std::string& line : failure.outcome().stack) note(Note::Level::warn, line);
        record.next_because(failure.outcome().sentence,
                            failure.outcome().hung ? RestartCause::hang : RestartCause::worker);
        return;
    }
    Ending ending = ended(Verdict::worker_failed, failure.outcome().code(), decision.sentence);
    failure.tell(ending);
    ending.at = config.to_day + failure.at().time_since_epoch();
    ending.generation = newest();
    end.decide(std::move(ending));
}

void MachineState::gather(Time now, bool by_lease) {
    if (is_refused(now) || too_few_are_usable(now)) return;
    const Time again = std::min({gathering.speaks_at(), out_of_service.asks_at(),
                                 gathering.since() + limits().times.join_timeout});
    if (!gathering.may_be_enough() && now < again) return wake_at(again);
    gathering.counted(now, count_candidates(now), limits().min_nodes);
    if (!gathering.may_be_enough() && now < again) return wake_at(again);
    std::vector<Candidate> here = candidates(now);
    if (begins_allocation())
        here = of_whole_hosts(std::move(here), limits().order, limits().max_nodes);
    if (const Time until = rivals_answer_by(here.size()); now < until) return wake_at(until);
    const std::vector<std::string> absent = missing(here);
    const QuorumVerdict verdict =
        decide_quorum({.here = static_cast<int>(here.size()),
                       .missing = absent,
                       .names = absent.empty() ? names_of(here) : std::vector<std::string>{},
                       .out_of_service = out_of_service.of(unheard(absent)),
                       .first = begins_allocation(),
                       .since_gathering = gathering.since(),
                       .since_min = gathering.since_min(),
                       .wait_for_members = members_awaited_until(now, by_lease)},
                      limits(), now);
    switch (verdict.what) {
        case QuorumVerdict::What::closes:
            return propose_generation(now, here);
        case QuorumVerdict::What::waits:
            wake_at(verdict.until);
            ask_about(now, absent);
            return say_waiting(now, verdict.sentence);
        case QuorumVerdict::What::impossible:
            end.decide(unavailable(verdict.sentence));
            return propose_end(now);
    }
}

void MachineState::say_waiting(Time now, const std::string& sentence) {
    gathering.wait_for(sentence);
    if (now >= gathering.speaks_at()) {
        note(Note::Level::info, sentence);
        gathering.spoke(now);
    }
    wake_at(gathering.speaks_at());
}

// Numbers the entry after the newest known one. If another leader has written that number, the
// create loses and that entry is adopted.
void MachineState::propose(Time now, LedgerEntry entry) {
    entry.number = EntryNumber{top() ? top()->number.value + 1 : 0};
    entry.leader = active.identity;
    entry.at = active.self;
    entry.random = active.random();
    entry.requeue = config.requeue;
    entry.command_digest = config.command_digest;
    record.write(entry, now, top() ? &*top() : nullptr, blame(), facts);
    watch.proposed(entry.random, now);
    // The phase changes before the answer, so that a second proposal cannot start meanwhile.
    phase = entry.end() ? Phase::ending : Phase::creating;
    ask_ledger(now, CreateEntry{std::move(entry)});
}

// All members of the newest generation stood still until its lease had passed: no node was lost
// (PROTOCOL.md, rule 28). Empty: that is not known of all.
std::string MachineState::suspension() const {
    if (!any_generation() || begins_allocation() || facts.failure()) return {};
    const std::vector<Member>& members = top()->assignment.members;
    Duration still = Duration::max();
    for (const Member& member : members) {
        const NodeState* node = roster.find(member.node);
        if (!node || node->beat.stood_still == Duration{}) return {};
        if (node->beat.marks.generation != newest()) return {};  // it stood still before that one
        still = std::min(still, node->beat.stood_still);
    }
    return "the job was suspended: " +
           (members.size() == 1 ? "its node" : "all " + std::to_string(members.size()) + " nodes") +
           " stood still for " + to_text(still);
}

void MachineState::propose_generation(Time now, const std::vector<Candidate>& here) {
    if (const std::string suspended = suspension(); !suspended.empty()) {
        record.next_because(suspended, RestartCause::suspended);
        note(Note::Level::info, suspended);
    }
    LedgerEntry entry;
    Assignment& a = entry.assignment;
    a.generation = Generation{newest().value + 1};
    a.members = assign_ranks(without_blamed(here, blame(), most_nodes()),
                             any_generation() ? top()->assignment.members : std::vector<Member>{},
                             limits().order, most_nodes());
    a.world_size = world_size(a.members);
    a.restarts = record.restarts();
    a.max_restarts = restart_budget(limits().max_restarts);
    a.cause = record.cause();
    a.cold = record.starts_cold(limits());
    propose(now, std::move(entry));
}

Blame MachineState::blame() const {
    return any_generation() ? record.blame(*top(), facts, limits()) : record.blame();
}

// With --on-join=spare, new nodes stay spares and the world never grows. It may shrink, where an
// operator has set a smaller MAX.
int MachineState::most_nodes() const {
    const int max = limits().max_nodes;
    if (!any_generation() || limits().on_join != OnJoin::spare) return max;
    const auto members = static_cast<int>(top()->assignment.members.size());
    return std::min(max, std::max(limits().min_nodes, members));
}

}  // namespace ddprun::rendezvous
