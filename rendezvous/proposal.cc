// What follows a generation once it may be followed: a restart, a wait for nodes, the next
// generation, or the end of the job. The last part of the rendezvous machine.
#include "rendezvous/machine_state.h"

namespace ddprun::rendezvous {
namespace {

constexpr auto kNextWord = std::chrono::seconds{30};  // between two lines about who is missing

}  // namespace

void Machine::State::decide_failure() {
    const bool progressed = held && held->progressed;
    const RestartDecision decision =
        decide_restart(history, failure->outcome, progressed, config.limits);
    if (decision.restart) {
        note(Note::Level::warn,
             decision.sentence);  // the failure itself was said when the generation ended
        next_cause = failure->outcome.sentence;
        failure.reset();
        return;
    }
    const WorkerOutcome& first = failure->outcome;
    ending = Ending{.verdict = Verdict::worker_failed,
                    .code = first.signal ? 128 + first.signal : first.exit_code,
                    .sentence = decision.sentence,
                    .first_failure = first,
                    .first_failure_node = failure->node,
                    .consequences = failure->others};
}

void Machine::State::gather(Time now, bool by_lease) {
    const std::vector<Candidate> here = candidates(now);
    const int count = static_cast<int>(here.size());
    if (count < config.limits.min_nodes)
        since_min = kNever;
    else if (since_min == kNever)
        since_min = now;
    const QuorumVerdict verdict =
        decide_quorum({.here = count,
                       .missing = missing(here),
                       .first = !top,
                       .since_gathering = gathering_since,
                       .since_min = since_min,
                       .wait_for_members = members_awaited_until(here, by_lease)},
                      config.limits, now);
    switch (verdict.what) {
        case QuorumVerdict::What::closes:
            return propose_generation(here);
        case QuorumVerdict::What::waits:
            wake = std::min(wake, verdict.until);
            return say_waiting(now, verdict.sentence);
        case QuorumVerdict::What::impossible:
            ending = Ending{.verdict = Verdict::unavailable,
                            .code = 69,
                            .sentence = verdict.sentence,
                            .first_failure = {},
                            .first_failure_node = {},
                            .consequences = 0};
            return propose_end();
    }
}

void Machine::State::say_waiting(Time now, const std::string& sentence) {
    if (next_word == kNever) next_word = gathering_since + kFirstWord;
    if (now >= next_word) {
        note(Note::Level::info, sentence);
        next_word = now + kNextWord;
    }
    wake = std::min(wake, next_word);
}

void Machine::State::propose(LedgerEntry entry) {
    entry.number = EntryNumber{top ? top->number.value + 1 : 0};
    entry.leader = config.self;
    entry.random = random();
    entry.requeue = config.requeue;
    entry.command_digest = config.command_digest;
    entry.progressed = history.progressed;
    phase = entry.kind == LedgerEntry::Kind::end ? Phase::ending : Phase::creating;
    effects.push_back(CreateEntry{std::move(entry)});
}

void Machine::State::propose_generation(const std::vector<Candidate>& here) {
    LedgerEntry entry;
    entry.kind = LedgerEntry::Kind::generation;
    Assignment& a = entry.assignment;
    a.generation = Generation{newest().value + 1};
    a.members = assign_ranks(here, top ? top->assignment.members : std::vector<Member>{},
                             config.limits.order, config.limits.max_nodes);
    a.world_size = a.members.back().rank_offset + a.members.back().offer.slots;
    a.restarts = history.restarts;
    a.max_restarts = restart_budget(config.limits.max_restarts);
    a.cause = next_cause;
    propose(std::move(entry));
}

void Machine::State::propose_end() {
    LedgerEntry entry;
    entry.kind = LedgerEntry::Kind::end;
    // The last generation stays named in the end, so that whoever reads only this entry knows the
    // number.
    if (top) entry.assignment = top->assignment;
    entry.ending = *ending;
    propose(std::move(entry));
}

void Machine::State::close(Time now) {
    phase = Phase::closed;
    close_by = now + lease();
    note(Note::Level::debug, "the job has ended: " + ending->sentence);
    for (auto& [id, node] : roster.nodes()) tell_end(node);
}

void Machine::State::tell_end(NodeState& node) {
    if (!node.session) return;
    node.told_end = true;
    send(*node.session, Finished{*ending});
}

// Members whose connection is gone just now get a lease's time to come again and hear the verdict.
void Machine::State::closed(Time now) {
    wake = kNever;
    if (closed_said) return;
    bool all_told = true;
    if (top && !single())
        for (const Member& member : top->assignment.members) {
            const NodeState* node = roster.find(member.node);
            all_told &= roster.gone(member.node) || !node || node->told_end;
        }
    if (!all_told && now < close_by) {
        wake = close_by;
        return;
    }
    closed_said = true;
    effects.push_back(Closed{*ending});
}

}  // namespace ddprun::rendezvous
