#include "rendezvous/first_failure.h"

#include <algorithm>

namespace ddprun::rendezvous {

void FirstFailure::take(const std::string& node, const WorkerOutcome& outcome, Time at) {
    if (!ranks_.insert(outcome.rank).second) return;
    const auto place = std::upper_bound(all_.begin(), all_.end(), at,
                                        [](Time time, const One& one) { return time < one.at; });
    all_.insert(place, {node, outcome, at});
    if (all_.size() > 1 + kConsequencesTold) all_.pop_back();
}

void FirstFailure::tell(Ending& ending) const {
    if (all_.empty()) return;
    ending.first_failure = outcome();
    ending.first_failure_node = node();
    ending.consequences = static_cast<int>(ranks_.size()) - 1;
    for (std::size_t i = 1; i < all_.size(); ++i) {
        ending.told_consequences.push_back({all_[i].node, all_[i].outcome, all_[i].at - at()});
        ending.told_consequences.back().outcome.tail.clear();
    }
}

}  // namespace ddprun::rendezvous
