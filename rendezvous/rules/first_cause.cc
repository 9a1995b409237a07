// Which event came first: the loss of a node or the failure of a worker (first_cause.h).
#include "rendezvous/rules/first_cause.h"

#include <algorithm>

#include "rendezvous/model/durations.h"

namespace ddprun::rendezvous {
namespace {

std::string sentence_of(const GenerationFacts& facts, const Absent& absent) {
    const std::string lost = "node " + absent.node.name + " is lost: ";
    const std::string rank = "rank " + std::to_string(facts.failure().outcome().rank) + " failed";
    if (!absent.heard) return lost + "no message has come from it since " + rank;
    const Duration before = facts.failure().at() - *absent.heard;
    // The last Beat came after the failure but within one period, so a negative age would confuse
    // the reader.
    if (before < Duration{}) return lost + "its last message came when " + rank;
    return lost + "its last message came " + to_text(before) + " before " + rank;
}

}  // namespace

bool silent_since_failure(const GenerationFacts& facts, const Absent& absent, Duration beat) {
    if (absent.heard) return *absent.heard <= facts.failure().at() + beat;
    const auto& told = facts.silent();
    return !told || std::find(told->begin(), told->end(), absent.node) != told->end();
}

Time silence_is_known_at(const GenerationFacts& facts, Duration beat) {
    return facts.failure().at() + share(beat, kBeatsOfSilence);
}

std::optional<GenerationFacts::Interrupted> cause_before_failure(const GenerationFacts& facts,
                                                                 const std::vector<Absent>& absent,
                                                                 Duration beat) {
    const Time failed = facts.failure().at();
    if (facts.interrupted() && facts.interrupted()->at <= failed + beat) return facts.interrupted();
    for (const Absent& each : absent)
        if (silent_since_failure(facts, each, beat))
            return GenerationFacts::Interrupted{{each.node.name, sentence_of(facts, each), true},
                                                std::min(each.heard.value_or(failed), failed)};
    return std::nullopt;
}

}  // namespace ddprun::rendezvous
