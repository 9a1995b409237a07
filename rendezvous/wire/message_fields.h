// The fields of the messages of rendezvous/model/messages.h, with their bounds, and the place of
// each message in the envelopes ToLeader and ToNode. fields.h explains the words.
#pragma once

#include "rendezvous/rules/generation_facts.h"
#include "rendezvous/wire/model_fields.h"

namespace ddprun::rendezvous {

inline constexpr Items kPeers{kMaxNodes};

// ---- in both directions

void each_field(auto& v, Is<Stop> auto& stop) {
    v(DDPRUN_FIELD(generation), stop.generation, kNumberOrNone);
    v(DDPRUN_FIELD(signal), stop.signal, Whole{0, 64});
    v(DDPRUN_FIELD(reason), stop.reason, kSentence);
    v(DDPRUN_FIELD(cause), stop.cause, up_to(StopCause::node_leaves));
    v(DDPRUN_FIELD(left), stop.left, kAround);
    v(DDPRUN_FIELD(requeue), stop.requeue, Any{});
}

void each_field(auto& v, Is<NodeFailure> auto& failure) {
    v(DDPRUN_FIELD(node), failure.node, kName);
    v(DDPRUN_FIELD(outcome), failure.outcome, Any{});
}

void each_field(auto& v, Is<LimitsAsked> auto& asked) {
    v(DDPRUN_FIELD(number), asked.number, kNumber);
    each_field(v, asked.limits);
}

// Times travel as durations ("how long ago"), since the clocks of two hosts do not agree.
void each_field(auto& v, Is<Facts> auto& facts) {
    v(DDPRUN_FIELD(generation), facts.generation, kNumberOrNone);
    v(DDPRUN_FIELD(reach), facts.reach, up_to(Reach::progressed));
    v(DDPRUN_FIELD(snapshot), facts.snapshot, kNumberOrNone);
    // The first failure and the consequences that are told.
    v(DDPRUN_FIELD(failures), facts.failures, Items{1 + kConsequencesTold});
    v(DDPRUN_FIELD(interruption), facts.interruption, [&facts](auto& inner, auto& interruption) {
        inner(DDPRUN_FIELD(node), interruption.node, kName);
        inner(DDPRUN_FIELD(sentence), interruption.sentence, kSentence);
        inner(DDPRUN_FIELD(blame), interruption.blame, Any{});
        inner(DDPRUN_FIELD(ago), facts.interrupted, kAnyPast);
    });
    // An empty list means that all members were heard; none, that nobody has judged it yet.
    v.list_if_known(DDPRUN_FIELD(silence_known), DDPRUN_FIELD(silent), facts.silent,
                    Items{kSilentTold});
    v(DDPRUN_FIELD(stop), facts.stop, Any{});
    v(DDPRUN_FIELD(led), facts.led, kAnyPast);
    v(DDPRUN_FIELD(saved), facts.saved, kAnyPast);
    v(DDPRUN_FIELD(saving), facts.saving, kAnyPast);
    v(DDPRUN_FIELD(limits), facts.limits, Any{});
}

// ---- node → rendezvous

void each_field(auto& v, Is<Hello> auto& hello) {
    v(DDPRUN_FIELD(run_id), hello.run_id, Text{0, 1024});
    v(DDPRUN_FIELD(node), hello.node, Any{});
    v(DDPRUN_FIELD(version), hello.version, Text{0, 64});
    v(DDPRUN_FIELD(requeue), hello.requeue, kCount);
    v(DDPRUN_FIELD(limits), hello.limits, Any{});
}

void each_field(auto& v, Is<Mark> auto& mark) {
    v(DDPRUN_FIELD(phase), mark.phase, up_to(RestartPhase::progress));
    v(DDPRUN_FIELD(ago), mark.ago, kAnyPast);
}

void each_field(auto& v, Is<RankStep> auto& rank) {
    v(DDPRUN_FIELD(rank), rank.rank, kCount);
    v(DDPRUN_FIELD(step), rank.step, kNumberOrNone);
}

void each_field(auto& v, Is<Still> auto& still) {
    v(DDPRUN_FIELD(workers), still.workers, Any{});
    v(DDPRUN_FIELD(doing), still.doing, up_to(Doing::has_ended));
    v(DDPRUN_FIELD(lasted), still.lasted, kAnyPast);
    v(DDPRUN_FIELD(usual), still.usual, kAnyPast);
    v(DDPRUN_FIELD(place), still.place, Any{});
    v(DDPRUN_FIELD(unmoved), still.unmoved, kAnyPast);
    v(DDPRUN_FIELD(lost_from), still.lost_from, Any{});
    v(DDPRUN_FIELD(lost_to), still.lost_to, Any{});
}

void each_field(auto& v, Is<Usage> auto& usage) {
    v(DDPRUN_FIELD(memory), usage.memory, kNumber);
    v(DDPRUN_FIELD(log_bytes), usage.log_bytes, kNumber);
    v(DDPRUN_FIELD(store_operations), usage.store_operations, kNumber);
    v(DDPRUN_FIELD(store_waiters), usage.store_waiters, kNumber);
}

void each_field(auto& v, Is<Beat> auto& beat) {
    // Beats are numbered from 1 on; an echo of 0 means that no Ack has come yet.
    v(DDPRUN_FIELD(number), beat.number, Whole{1, kMaxNumber});
    v(DDPRUN_FIELD(echo), beat.echo, kNumber);
    v(DDPRUN_FIELD(floor), beat.floor, kNumberOrNone);
    v(DDPRUN_FIELD(seen), beat.seen, kNumberOrNone);
    v(DDPRUN_FIELD(running), beat.running, kNumberOrNone);
    // Absent: this node has never heard another leader.
    v(DDPRUN_FIELD(silent), beat.silent, AbsentIf{Duration::max(), kAnyPast});
    v(DDPRUN_FIELD(reach), beat.reach, up_to(Reach::progressed));
    v(DDPRUN_FIELD(step), beat.step, kNumberOrNone);
    v(DDPRUN_FIELD(snapshot), beat.snapshot, kNumberOrNone);
    v(DDPRUN_FIELD(reports), beat.reports, kNumber);
    v(DDPRUN_FIELD(reported), beat.reported, kAnyPast);
    v(DDPRUN_FIELD(complete), beat.complete, Any{});
    v(DDPRUN_FIELD(marked), beat.marks.generation, kNumberOrNone);
    v(DDPRUN_FIELD(marks), beat.marks.passed, Items{kRestartPhases});  // each once at most
    v(DDPRUN_FIELD(slowest), beat.slowest, Items{kSlowest});
    v(DDPRUN_FIELD(still), beat.still, Items{kStillKinds});
    v(DDPRUN_FIELD(slow_worker), beat.pace.slowest, kCount);
    v(DDPRUN_FIELD(slow_outside), beat.pace.outside, Whole{0, 100});
    v(DDPRUN_FIELD(others_outside), beat.pace.others, Whole{0, 100});
    v(DDPRUN_FIELD(saving), beat.saving, kAnyPast);
    v(DDPRUN_FIELD(usage), beat.usage, Any{});
    v(DDPRUN_FIELD(stood_still), beat.stood_still, kAnyPast);
}

// Mark and job are random numbers, so any value is valid.
void each_field(auto& v, Is<Join> auto& join) {
    v(DDPRUN_FIELD(offer), join.offer, Any{});
    v(DDPRUN_FIELD(beat), join.beat, Any{});
    v(DDPRUN_FIELD(ledger_mark), join.ledger_mark, Any{});
    v(DDPRUN_FIELD(job), join.job, Any{});
    v(DDPRUN_FIELD(facts), join.facts, Any{});
}

void each_field(auto& v, Is<RecordedCalls> auto& recorded) {
    constexpr Text kText{0, kCallText, TooLong::cut};
    v(DDPRUN_FIELD(ranks), recorded.ranks, List{kMaxSlots, kCount});
    v(DDPRUN_FIELD(group), recorded.group, kText);
    v(DDPRUN_FIELD(last), recorded.last, kNumber);
    v(DDPRUN_FIELD(first), recorded.first, kNumber);
    v(DDPRUN_FIELD(calls), recorded.calls, List{kCallsTold, kText});
    v(DDPRUN_FIELD(waits_in), recorded.waits_in, kNumber);
}

void each_field(auto& v, Is<Report> auto& report) {
    v(DDPRUN_FIELD(generation), report.generation, kNumberOrNone);
    v(DDPRUN_FIELD(outcomes), report.outcomes, Items{kMaxSlots});
    v(DDPRUN_FIELD(recorded), report.recorded, Items{kRecordsTold});
}

void each_field(auto& v, Is<StopAsked> auto& asked) {
    v(DDPRUN_FIELD(signal), asked.signal, Whole{0, 64});
    v(DDPRUN_FIELD(reason), asked.reason, kSentence);
    v(DDPRUN_FIELD(cause), asked.cause, up_to(StopCause::node_leaves));
    v(DDPRUN_FIELD(left), asked.left, kAround);
    v(DDPRUN_FIELD(requeue), asked.requeue, Any{});
}

void each_field(auto& v, Is<Leave> auto& leave) {
    v(DDPRUN_FIELD(reason), leave.reason, kSentence);
}

void each_field(auto& v, Is<Unusable> auto& unusable) {
    v(DDPRUN_FIELD(reason), unusable.reason, kSentence);
}

void each_field(auto& v, Is<Gone> auto& gone) { v(DDPRUN_FIELD(node), gone.node, Any{}); }

void each_field(auto& v, Is<Inquire> auto& inquire) { v(DDPRUN_FIELD(as), inquire.as, Any{}); }

void each_field(auto& v, Is<SocketEnds> auto& ends) {
    v(DDPRUN_FIELD(from), ends.from, kAddress);
    v(DDPRUN_FIELD(from_port), ends.from_port, kPort);
    v(DDPRUN_FIELD(to), ends.to, kAddress);
    v(DDPRUN_FIELD(to_port), ends.to_port, kPort);
}

void each_field(auto& v, Is<AskOwners> auto& ask) {
    v(DDPRUN_FIELD(number), ask.number, kNumber);
    v(DDPRUN_FIELD(sockets), ask.sockets, Items{kSocketsAsked});
}

// The mark is a random number.
void each_field(auto& v, Is<Operate> auto& operate) {
    v(DDPRUN_FIELD(as), operate.as, Any{});
    v(DDPRUN_FIELD(job), operate.job, Any{});
    v(DDPRUN_FIELD(this_node), operate.this_node, Any{});
}

// ---- rendezvous → node

void each_field(auto& v, Is<Welcome> auto& welcome) {
    v(DDPRUN_FIELD(leader), welcome.leader, Any{});
    v(DDPRUN_FIELD(times), welcome.times, Any{});
    v(DDPRUN_FIELD(at), welcome.at, Any{});
    v(DDPRUN_FIELD(order), welcome.order, kPeers);
    v(DDPRUN_FIELD(max_nodes), welcome.max_nodes, Whole{1, kMaxWorld});
    v(DDPRUN_FIELD(ledger), welcome.ledger, kSentence);
    v(DDPRUN_FIELD(ledger_mark), welcome.ledger_mark, Any{});
    v(DDPRUN_FIELD(job), welcome.job, Any{});
}

void each_field(auto& v, Is<SnapshotAsked> auto& asked) {
    v(DDPRUN_FIELD(number), asked.number, Whole{1, kMaxNumber});
    v(DDPRUN_FIELD(by), asked.by, kSentence);
}

void each_field(auto& v, Is<NewsItem> auto& item) {
    v(DDPRUN_FIELD(kind), item.kind, up_to(NewsKind::node_joined));
    v(DDPRUN_FIELD(node), item.node, kName);
    v(DDPRUN_FIELD(first_rank), item.first_rank, kCount);
    v(DDPRUN_FIELD(ranks), item.ranks, kCount);
    v(DDPRUN_FIELD(exit_code), item.exit_code, Whole{0, 255});
    v(DDPRUN_FIELD(signal), item.signal, Whole{0, 64});
}

void each_field(auto& v, Is<News> auto& news) {
    v(DDPRUN_FIELD(generation), news.generation, kNumberOrNone);
    v(DDPRUN_FIELD(items), news.items, Items{kNewsTold});
}

void each_field(auto& v, Is<Ack> auto& ack) {
    v(DDPRUN_FIELD(number), ack.number, Whole{1, kMaxNumber});
    v(DDPRUN_FIELD(beat), ack.beat, kNumber);
    v(DDPRUN_FIELD(entry), ack.entry, kNumberOrNone);
    v(DDPRUN_FIELD(held), ack.held, kNumberOrNone);
    // Absent if this Ack extends no deadline.
    v(DDPRUN_FIELD(remaining), ack.remaining, kAround);
    v(DDPRUN_FIELD(over), ack.over, kNumberOrNone);
    v(DDPRUN_FIELD(facts), ack.facts, Any{});
    v(DDPRUN_FIELD(snapshot), ack.snapshot, Any{});
    v(DDPRUN_FIELD(news), ack.news, Any{});
}

void each_field(auto& v, Is<Assigned> auto& assigned) {
    // An assignment always belongs to an entry.
    v(DDPRUN_FIELD(entry), assigned.entry, kNumber);
    v(DDPRUN_FIELD(place), assigned.place, Any{});
    v(DDPRUN_FIELD(beat), assigned.beat, kNumber);
    // A job of one node has no lease.
    v(DDPRUN_FIELD(remaining), assigned.remaining, AbsentIf{Duration::max(), kAround});
    v(DDPRUN_FIELD(order), assigned.order, kPeers);
}

void each_field(auto& v, Is<Parked> auto& parked) {
    v(DDPRUN_FIELD(sentence), parked.sentence, kSentence);
    v(DDPRUN_FIELD(order), parked.order, kPeers);
}

void each_field(auto& v, Is<Elsewhere> auto& elsewhere) {
    v(DDPRUN_FIELD(address), elsewhere.address, kName);
    v(DDPRUN_FIELD(port), elsewhere.port, kPort);
    v(DDPRUN_FIELD(rest), elsewhere.rest, kTime);
}

void each_field(auto& v, Is<Examine> auto& examine) {
    v(DDPRUN_FIELD(generation), examine.generation, kNumberOrNone);
    v(DDPRUN_FIELD(ranks), examine.ranks, List{kSlowest, kCount});
}

void each_field(auto& v, Is<Finished> auto& finished) {
    v(DDPRUN_FIELD(ending), finished.ending, Any{});
}

void each_field(auto& v, Is<Refused> auto& refused) {
    v(DDPRUN_FIELD(sentence), refused.sentence, kSentence);
    v(DDPRUN_FIELD(for_good), refused.for_good, Any{});
}

void each_field(auto& v, Is<Standing> auto& standing) {
    v(DDPRUN_FIELD(node), standing.node, Any{});
    v(DDPRUN_FIELD(leads), standing.leads, Any{});
    v(DDPRUN_FIELD(held), standing.held, kNumberOrNone);
    v(DDPRUN_FIELD(entry), standing.entry, kNumberOrNone);
}

// Any 32-bit number may be a user's.
void each_field(auto& v, Is<SocketOwner> auto& owner) {
    v(DDPRUN_FIELD(whose), owner.whose, up_to(Whose::failed));
    v(DDPRUN_FIELD(user), owner.user, Whole{0, UINT32_MAX});
}

void each_field(auto& v, Is<Owners> auto& owners) {
    v(DDPRUN_FIELD(number), owners.number, kNumber);
    v(DDPRUN_FIELD(owners), owners.owners, Items{kSocketsAsked});
}

// ---- envelopes

// The field of a message in its envelope, and its name in sentences about faults. A message that is
// missing here does not compile.
template <class Field>
struct Enveloped {
    const char* name;
    Field field;
};
template <class Field>
Enveloped(const char*, Field) -> Enveloped<Field>;
inline auto enveloped(std::type_identity<Hello>) { return Enveloped{"Hello", DDPRUN_FIELD(hello)}; }
inline auto enveloped(std::type_identity<Join>) { return Enveloped{"Join", DDPRUN_FIELD(join)}; }
inline auto enveloped(std::type_identity<Beat>) { return Enveloped{"Beat", DDPRUN_FIELD(beat)}; }
inline auto enveloped(std::type_identity<Report>) {
    return Enveloped{"Report", DDPRUN_FIELD(report)};
}
inline auto enveloped(std::type_identity<StopAsked>) {
    return Enveloped{"StopAsked", DDPRUN_FIELD(stop_asked)};
}
inline auto enveloped(std::type_identity<Leave>) { return Enveloped{"Leave", DDPRUN_FIELD(leave)}; }
inline auto enveloped(std::type_identity<Gone>) { return Enveloped{"Gone", DDPRUN_FIELD(gone)}; }
inline auto enveloped(std::type_identity<Unusable>) {
    return Enveloped{"Unusable", DDPRUN_FIELD(unusable)};
}
inline auto enveloped(std::type_identity<Inquire>) {
    return Enveloped{"Inquire", DDPRUN_FIELD(inquire)};
}
inline auto enveloped(std::type_identity<AskOwners>) {
    return Enveloped{"AskOwners", DDPRUN_FIELD(ask_owners)};
}
inline auto enveloped(std::type_identity<Operate>) {
    return Enveloped{"Operate", DDPRUN_FIELD(operate)};
}
inline auto enveloped(std::type_identity<Welcome>) {
    return Enveloped{"Welcome", DDPRUN_FIELD(welcome)};
}
inline auto enveloped(std::type_identity<Ack>) { return Enveloped{"Ack", DDPRUN_FIELD(ack)}; }
inline auto enveloped(std::type_identity<Assigned>) {
    return Enveloped{"Assigned", DDPRUN_FIELD(assigned)};
}
inline auto enveloped(std::type_identity<Parked>) {
    return Enveloped{"Parked", DDPRUN_FIELD(parked)};
}
inline auto enveloped(std::type_identity<Elsewhere>) {
    return Enveloped{"Elsewhere", DDPRUN_FIELD(elsewhere)};
}
inline auto enveloped(std::type_identity<Stop>) { return Enveloped{"Stop", DDPRUN_FIELD(stop)}; }
inline auto enveloped(std::type_identity<Examine>) {
    return Enveloped{"Examine", DDPRUN_FIELD(examine)};
}
inline auto enveloped(std::type_identity<Finished>) {
    return Enveloped{"Finished", DDPRUN_FIELD(finished)};
}
inline auto enveloped(std::type_identity<Refused>) {
    return Enveloped{"Refused", DDPRUN_FIELD(refused)};
}
inline auto enveloped(std::type_identity<Standing>) {
    return Enveloped{"Standing", DDPRUN_FIELD(standing)};
}
inline auto enveloped(std::type_identity<Owners>) {
    return Enveloped{"Owners", DDPRUN_FIELD(owners)};
}

}  // namespace ddprun::rendezvous
