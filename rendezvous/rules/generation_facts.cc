// Collects and passes on what is known about a generation (generation_facts.h).
#include "rendezvous/rules/generation_facts.h"

#include <algorithm>

namespace ddprun::rendezvous {

bool GenerationFacts::reached(Reach reach) {
    if (reach <= reach_) return false;
    reach_ = reach;
    return note(true);
}

// A Beat says of which step the snapshot is, and comes up to a period later. The node's facts say
// when it was, and come with its next Join.
bool GenerationFacts::saved(std::int64_t snapshot, Time at) {
    if (snapshot == snapshot_ && at > kLongAgo) saved_at_ = std::min(saved_at_, at);
    if (snapshot <= snapshot_) return false;
    snapshot_ = snapshot;
    saved_at_ = at;
    return note(true);
}

bool GenerationFacts::saving(Duration took) {
    if (took <= saving_) return false;
    saving_ = took;
    return note(true);
}

bool GenerationFacts::asked(const LimitsAsked& limits) {
    if (limits.number <= limits_.number) return false;
    limits_ = limits;
    return note(true);
}

bool GenerationFacts::failed(const std::string& node, const WorkerOutcome& outcome, Time at) {
    // Only a new first failure changes brief(), so only then all nodes need another Ack.
    const bool first = !failure_ || at < failure_.at();
    const bool news = failure_.take(node, outcome, at);
    note(news && first);
    return news;
}

bool GenerationFacts::interrupt(const Interruption& what, Time at) {
    if (interrupted_ && interrupted_->at <= at) return false;
    interrupted_ = {what, at};
    return note(true);
}

bool GenerationFacts::not_heard(const std::vector<NodeId>& members) {
    // An empty list is news too: it says that the leader has judged and that nobody was silent.
    const bool first = !silent_;
    if (first) silent_.emplace();
    const std::size_t before = silent_->size();
    for (const NodeId& member : members)
        if (silent_->size() < kSilentTold &&
            std::find(silent_->begin(), silent_->end(), member) == silent_->end())
            silent_->push_back(member);
    return note(first || silent_->size() > before);
}

void GenerationFacts::stopping(const Stop& stop, Time now) {
    if (stop_ || stop.generation != generation_) return;
    stop_ = stop;
    stop_at_ = now;
    interrupt({{}, stop.reason}, now);
}

std::optional<Stop> GenerationFacts::stop(Time now) const {
    std::optional<Stop> told = stop_;
    if (told && told->left) *told->left -= now - stop_at_;
    return told;
}

void GenerationFacts::hear(const Facts& said, Time now) {
    // Facts of another generation must never mix with these: restarts are counted per generation.
    if (said.generation != generation_) return;
    reached(said.reach);
    saved(said.snapshot, said.saved ? now - *said.saved : kLongAgo);
    saving(said.saving);
    asked(said.limits);
    for (const NodeFailure& each : said.failures)
        failed(each.node, each.outcome, now - each.outcome.age);
    if (said.interruption) interrupt(*said.interruption, now - said.interrupted);
    if (said.silent) not_heard(*said.silent);
    if (said.stop) stopping(*said.stop, now);
    if (said.led) led_at(now - *said.led);
}

Facts GenerationFacts::all(Time now) const {
    Facts facts{.generation = generation_,
                .reach = reach_,
                .snapshot = snapshot_,
                .failures = failure_.told(now)};
    if (interrupted_) {
        facts.interruption = interrupted_->what;
        facts.interrupted = std::max(Duration{}, now - interrupted_->at);
    }
    facts.silent = silent_;
    facts.stop = stop(now);
    if (led_ > kLongAgo) facts.led = now - led_;
    if (saved_at_ > kLongAgo) facts.saved = std::max(Duration{}, now - saved_at_);
    facts.saving = saving_;
    facts.limits = limits_;
    return facts;
}

Facts GenerationFacts::brief(Time now) const {
    Facts facts = all(now);
    // The output of a failed worker may be large, and an Ack goes to every node.
    facts.stop.reset();
    facts.led.reset();
    if (facts.failures.size() > 1) facts.failures.resize(1);
    for (NodeFailure& each : facts.failures) {
        each.outcome.tail.clear();
        each.outcome.stack.clear();
        each.outcome.remarks.clear();
    }
    return facts;
}

}  // namespace ddprun::rendezvous
