// Facts and Stop ↔ protobuf: what leader and nodes tell each other about a generation.
#include "rendezvous/rules/generation_facts.h"
#include "rendezvous/wire/wire_parts.h"

namespace ddprun::rendezvous {
namespace {

// 1 MiB for the texts of all failures together. A Join with them must fit into a node's frame.
constexpr std::size_t kFactsTexts = std::size_t{1} << 20;

}  // namespace

void write(const Stop& from, link::Stop& to) {
    to.set_generation(from.generation.value);
    to.set_signal(from.signal);
    to.set_reason(clipped(from.reason));
    to.set_cause(static_cast<int>(from.cause));
    if (from.left) to.set_left(from.left->count());
    to.set_requeue(from.requeue);
}

Stop read(const Place& place, const link::Stop& from) {
    return {read_generation(place, "generation", from.generation()),
            place.small("signal", from.signal(), 0, 64),
            place.text("reason", from.reason(), 0, kMaxText),
            read_cause(place, from),
            read_left(place, from),
            from.requeue()};
}

// Times travel as durations ("how long ago"), since the clocks of two hosts do not agree.
void write(const Facts& from, link::Facts& to) {
    to.set_generation(from.generation.value);
    to.set_progressed(from.progressed);
    to.set_snapshot(from.snapshot);
    TextBudget budget(kFactsTexts);
    for (const NodeFailure& each : from.failures) {
        link::NodeFailure& one = *to.add_failures();
        one.set_node(each.node);
        write(each.outcome, *one.mutable_outcome(), budget);
    }
    if (from.interruption) {
        link::Interruption& interruption = *to.mutable_interruption();
        interruption.set_node(from.interruption->node);
        interruption.set_sentence(clipped(from.interruption->sentence));
        interruption.set_blame(from.interruption->blame);
        interruption.set_ago(from.interrupted.count());
    }
    // Repeated fields cannot be absent, so a flag tells an empty list from none.
    to.set_silence_known(from.silent.has_value());
    if (from.silent)
        for (const NodeId& node : *from.silent) write(node, *to.add_silent());
    if (from.stop) write(*from.stop, *to.mutable_stop());
    if (from.led) to.set_led(from.led->count());
}

Facts read(const Place& place, const link::Facts& from) {
    Facts facts;
    facts.generation = read_generation(place, "generation", from.generation());
    facts.progressed = from.progressed();
    facts.snapshot = place.integer("snapshot", from.snapshot(), -1, kMaxNumber);
    // The first failure and the consequences that are told.
    if (place.count("failures", from.failures().size(), 1 + kConsequencesTold))
        for (int i = 0; i < from.failures_size(); ++i) {
            const Place here = place.at("failures", i);
            facts.failures.push_back({here.text("node", from.failures(i).node(), 0, kMaxName),
                                      read(here.at("outcome"), from.failures(i).outcome())});
        }
    if (from.has_interruption()) {
        const Place here = place.at("interruption");
        const link::Interruption& interruption = from.interruption();
        facts.interruption = {here.text("node", interruption.node(), 0, kMaxName),
                              here.text("sentence", interruption.sentence(), 0, kMaxText),
                              interruption.blame()};
        facts.interrupted =
            here.duration("ago", interruption.ago(), Duration{0}, Duration{kMaxNumber});
    }
    // An empty list with silence_known means that all members were heard; without, nobody has
    // judged it yet.
    if (from.silence_known() && place.count("silent", from.silent().size(), kSilentTold)) {
        facts.silent.emplace();
        for (int i = 0; i < from.silent_size(); ++i)
            facts.silent->push_back(read(place.at("silent", i), from.silent(i)));
    }
    if (from.has_stop()) facts.stop = read(place.at("stop"), from.stop());
    if (from.has_led())
        facts.led = place.duration("led", from.led(), Duration{0}, Duration{kMaxNumber});
    return facts;
}

}  // namespace ddprun::rendezvous
