// What follows a generation once it may be followed: a restart, a wait for nodes, the next
// generation, or the end of the job. The last part of the rendezvous machine.
#include <algorithm>

#include "rendezvous/machine/machine_state.h"

namespace ddprun::rendezvous {
namespace {

constexpr double kLateLook = 0.05;                    // of a lease
constexpr auto kNextWord = std::chrono::seconds{30};  // between two lines about who is missing

}  // namespace

std::vector<Absent> Machine::State::absent_members() const {
    std::vector<Absent> absent;
    for (const Member& member : top->assignment.members) {
        const NodeState* node = roster.find(member.node);
        if ((node && is_back(*node)) || unusable.contains(member.node.name)) continue;
        Time heard = node ? node->beat_came : kLongAgo;
        if (member.node == top->at.node) heard = std::max(heard, facts.led());
        absent.push_back({member.node, heard > kLongAgo ? std::optional(heard) : std::nullopt});
    }
    return absent;
}

// Told to all, for whoever leads next cannot know it.
void Machine::State::judge_silence(Time now) {
    if (single() || !facts.failure() || facts.silent()) return;
    const Time at = silence_is_known_at(facts, beat_period());
    if (now < at) return wake_at(at);
    std::vector<NodeId> silent;
    for (const Absent& absent : absent_members())
        if (silent_since_failure(facts, absent, beat_period())) silent.push_back(absent.node);
    facts.not_heard(silent);
}

// The failure is a consequence, of the loss of a node or of what else had ended the generation: it
// uses up no restart.
bool Machine::State::is_explained() {
    const auto cause = cause_before_failure(facts, absent_members(), beat_period());
    if (!cause) return false;
    facts.interrupt(cause->what, cause->at);
    next_cause = cause->what.sentence;
    note(cause->what.node.empty() ? Note::Level::debug : Note::Level::warn,
         cause->what.sentence + "; that is the first cause, so no restart is used up");
    return true;
}

void Machine::State::decide_failure() {
    judged_failure = true;
    if (is_explained()) return;
    const FirstFailure& failure = facts.failure();
    if (!failure.outcome().hung) culprit = failure.node();
    const RestartDecision decision =
        decide_restart(history, failure.outcome(), facts.progressed(), config.limits);
    if (decision.restart) {
        note(Note::Level::warn,
             decision.sentence);  // the failure itself was said when the generation ended
        for (const std::string& line : failure.outcome().stack)  // else the report has it
            note(Note::Level::warn, line);
        next_cause = failure.outcome().sentence;
        return;
    }
    const WorkerOutcome& first = failure.outcome();
    ending = Ending{.verdict = Verdict::worker_failed,
                    .code = first.code(),
                    .sentence = decision.sentence,
                    .first_failure = {},
                    .first_failure_node = {}};
    failure.tell(*ending);
    ending->at = config.to_day + failure.at().time_since_epoch();
    ending->generation = newest();
}

// The loss of a node that ended the last generation is why there is none after it.
void Machine::State::complete_ending(Time now) {
    if (ending->at == Duration{}) ending->at = config.to_day + now.time_since_epoch();
    const auto& interrupted = facts.interrupted();
    if (ending->loss || !interrupted || interrupted->what.node.empty()) return;
    const NodeLoss loss{interrupted->what.node, interrupted->what.sentence};
    if (ending->verdict == Verdict::worker_failed) ending->loss = loss;  // came with it
    if (ending->verdict != Verdict::unavailable) return;
    ending->loss = loss;
    ending->at = config.to_day + interrupted->at.time_since_epoch();
    ending->generation = newest();
    facts.failure().tell_as_consequences(*ending, interrupted->at);
}

// The nodes of a step are all that there will be at the start. Those that have not come yet are to
// hear why there is no job, rather than to call in vain.
bool Machine::State::too_few_are_usable(Time now) {
    const auto nodes = static_cast<int>(config.limits.order.size());
    const auto lost = static_cast<int>(unusable.size());
    if (top || nodes == 0 || lost == 0 || nodes - lost >= config.limits.min_nodes) return false;
    const auto come = std::ranges::count_if(
        roster.nodes(), [](const auto& each) { return each.second.connected(); });
    if (come < nodes && now < unusable_since + lease()) {
        wake_at(unusable_since + lease());
        return true;
    }
    const auto& [name, why] = *unusable.begin();
    ending = unavailable("node " + name + " " + why +
                         (lost == 1 ? "" : "; and " + std::to_string(lost - 1) + " more"));
    ending->code = 2;
    propose_end(now);
    return true;
}

void Machine::State::gather(Time now, bool by_lease) {
    if (too_few_are_usable(now)) return;
    if (next_word == kNever) next_word = gathering_since + kFirstWord;
    const Time again =
        std::min({next_word, ask_slurm_at, gathering_since + config.limits.times.join_timeout});
    if (news < enough_at && now < again) return wake_at(again);
    const int count = count_candidates(now);
    enough_at = news + config.limits.min_nodes - count;
    if (count < config.limits.min_nodes)
        since_min = kNever;
    else if (since_min == kNever)
        since_min = now;
    if (news < enough_at && now < again) return wake_at(again);
    std::vector<Candidate> here = candidates(now);
    if (!top) here = of_whole_hosts(std::move(here), config.limits.order, config.limits.max_nodes);
    const std::vector<std::string> absent = missing(here);
    const QuorumVerdict verdict =
        decide_quorum({.here = static_cast<int>(here.size()),
                       .missing = absent,
                       .out_of_service = given_up_of(absent),
                       .first = !top,
                       .since_gathering = gathering_since,
                       .since_min = since_min,
                       .wait_for_members = members_awaited_until(now, by_lease)},
                      config.limits, now);
    switch (verdict.what) {
        case QuorumVerdict::What::closes:
            return propose_generation(now, here);
        case QuorumVerdict::What::waits:
            wake_at(verdict.until);
            ask_about(now, absent);
            return say_waiting(now, verdict.sentence);
        case QuorumVerdict::What::impossible:
            ending = unavailable(verdict.sentence);
            return propose_end(now);
    }
}

void Machine::State::say_waiting(Time now, const std::string& sentence) {
    if (now >= next_word) {
        note(Note::Level::info, sentence);
        next_word = now + kNextWord;
    }
    wake_at(next_word);
}

void Machine::State::propose(Time now, LedgerEntry entry) {
    entry.number = EntryNumber{top ? top->number.value + 1 : 0};
    entry.leader = identity;
    entry.at = self;
    entry.random = random();
    entry.requeue = config.requeue;
    entry.command_digest = config.command_digest;
    history.progressed |= facts.progressed();
    entry.progressed = history.progressed;
    entry.in_a_row = history.in_a_row;
    entry.last_cause = history.last_cause;
    entry.blame = judged();
    const bool generation = entry.kind == LedgerEntry::Kind::generation;
    entry.restart = entry.kind == LedgerEntry::Kind::takeover
                        ? RestartRecord{{}, restart_watch.totals()}
                        : restart_watch.record(now, top && generation);
    if (generation) made = {entry.random, now};
    phase = entry.kind == LedgerEntry::Kind::end ? Phase::ending : Phase::creating;
    ask_ledger(now, CreateEntry{std::move(entry)});
}

void Machine::State::propose_generation(Time now, const std::vector<Candidate>& here) {
    LedgerEntry entry;
    entry.kind = LedgerEntry::Kind::generation;
    Assignment& a = entry.assignment;
    a.generation = Generation{newest().value + 1};
    a.members = assign_ranks(without_blamed(here, judged(), most_nodes()),
                             top ? top->assignment.members : std::vector<Member>{},
                             config.limits.order, most_nodes());
    a.world_size = world_size(a.members);
    a.restarts = history.restarts;
    a.max_restarts = restart_budget(config.limits.max_restarts);
    a.cause = next_cause;
    propose(now, std::move(entry));
}

// Where nodes that come are spares, the world never grows beyond what it was.
int Machine::State::most_nodes() const {
    if (!top || config.limits.on_join != OnJoin::spare) return config.limits.max_nodes;
    return std::max(config.limits.min_nodes, static_cast<int>(top->assignment.members.size()));
}

void Machine::State::propose_end(Time now) {
    LedgerEntry entry;
    entry.kind = LedgerEntry::Kind::end;
    // The last generation stays named in the end, so that whoever reads only this entry knows the
    // number.
    if (top) entry.assignment = top->assignment;
    complete_ending(now);
    entry.ending = *ending;
    propose(now, std::move(entry));
}

// Who comes while a smaller world runs: a planned stop, whose lease goes on until all have stopped.
void Machine::State::consider_late_joiners(Time now) {
    if (!holding() || stop || regrouping ||
        static_cast<int>(held->assignment.members.size()) >= config.limits.max_nodes)
        return;
    const std::int64_t snapshot = facts.snapshot();
    if (now < next_late_look && snapshot == late_look_snapshot) return wake_at(next_late_look);
    next_late_look = now + share(lease(), kLateLook);
    late_look_snapshot = snapshot;
    LateJoiners late{.members = static_cast<int>(held->assignment.members.size()),
                     .names = {},
                     .since = late_since,
                     .snapshot = snapshot > late_snapshot,
                     .ending = !complete.empty()};
    for (const auto& [id, node] : roster.nodes())
        if (node.connected() && node.idle() && !roster.gone(id) && !held->lease.has(id))
            late.names.push_back(id.name);
    if (late.names.empty()) {
        late_since = kNever;
        return;
    }
    if (late_since == kNever) {
        late.since = late_since = now;
        late_snapshot = snapshot;
        late.snapshot = false;
    }
    const JoinVerdict verdict = decide_join(late, config.limits, now);
    next_late_look = std::min(next_late_look, verdict.until);
    wake_at(next_late_look);
    if (!verdict.regroup) return;
    regrouping = verdict.sentence;
    facts.interrupt({{}, verdict.sentence}, now);
    restart_watch.ended(now, now);
    note(Note::Level::info, verdict.sentence);
    stop_all(now);
}

void Machine::State::close(Time now) {
    phase = Phase::closed;
    close_by = now + lease();
    // After a lost node srun ends with 1, whatever became of the job (Slurm 23.02): so it is said.
    const bool in_spite =
        ending->verdict == Verdict::succeeded && top && top->restart.totals.restarts > 0;
    note(in_spite ? Note::Level::info : Note::Level::debug,
         "the job has ended: " + ending->sentence);
    if (top)
        for (const std::string& line : summary_of(top->restart.totals))
            note(Note::Level::info, line);
    if (top && !top->blame.nodes.empty())
        note(Note::Level::warn,
             "first cause of a failure again and again; " + exclude_option(top->blame));
    for (auto& [id, node] : roster.nodes()) tell_end(node);
}

void Machine::State::tell_end(NodeState& node) {
    if (!node.session) return;
    node.told_end = true;
    send(*node.session, Finished{*ending});
}

// Members whose connection is gone just now get a lease's time to come again and hear the verdict,
// counted from when they were heard; or, where another has led until now, from then.
void Machine::State::closed(Time now) {
    if (closed_said) return;
    Time until = kLongAgo;
    if (top && !single())
        for (const Member& member : top->assignment.members) {
            const NodeState* node = roster.find(member.node);
            if (roster.gone(member.node) || (node ? node->told_end : !config.succession)) continue;
            const Time heard = std::max(node ? node->beat_came : kLongAgo, active_since);
            until = std::max(until, std::min(close_by, heard + lease()));
        }
    if (now < until) return wake_at(until);
    closed_said = true;
    effects.push_back(Closed{*ending});
}

}  // namespace ddprun::rendezvous
