// Orders the failures of a generation by time (first_failure.h).
#include "rendezvous/rules/first_failure.h"

#include <algorithm>

#include "rendezvous/rules/hang.h"

namespace ddprun::rendezvous {

bool FirstFailure::take(const std::string& node, const WorkerOutcome& outcome, Time at) {
    // The same failure may come first without its output (an Ack leaves it out) and later with it.
    if (!ranks_.insert(outcome.rank).second) {
        for (One& known : all_)
            if (known.outcome.rank == outcome.rank && known.outcome.tail.empty())
                known.outcome = outcome;
        return false;
    }
    // upper_bound, so that of two failures with the same time the one reported first stays first.
    const auto place = std::upper_bound(all_.begin(), all_.end(), at,
                                        [](Time time, const One& one) { return time < one.at; });
    all_.insert(place, {node, outcome, at});
    // With thousands of workers only the earliest matter; ranks_ still counts all of them.
    if (all_.size() > 1 + kConsequencesTold) all_.pop_back();
    return true;
}

void FirstFailure::add_to_hang(const std::string& who, const WorkerOutcome& wrote) {
    if (all_.empty() || !all_.front().outcome.hung) return;
    WorkerOutcome& outcome = all_.front().outcome;
    add_stack(outcome, who + ", as it wrote itself when SIGABRT ended it", &wrote);
    if (wrote.rank == outcome.rank) outcome.tail = wrote.tail;
}

std::vector<NodeFailure> FirstFailure::told(Time now) const {
    std::vector<NodeFailure> list;
    for (const One& one : all_) {
        list.push_back({one.node, one.outcome});
        list.back().outcome.age = std::max(Duration{}, now - one.at);
    }
    return list;
}

void FirstFailure::tell(Ending& ending) const {
    if (all_.empty()) return;
    ending.first_failure = outcome();
    ending.first_failure_node = node();
    ending.consequences = static_cast<int>(ranks_.size()) - 1;
    tell_from(1, at(), ending);
}

void FirstFailure::tell_as_consequences(Ending& ending, Time cause) const {
    ending.consequences = static_cast<int>(ranks_.size());
    tell_from(0, cause, ending);
}

void FirstFailure::tell_from(std::size_t first, Time cause, Ending& ending) const {
    for (std::size_t i = first; i < std::min(all_.size(), first + kConsequencesTold); ++i) {
        const Duration after = std::max(Duration{}, all_[i].at - cause);
        ending.told_consequences.push_back({all_[i].node, all_[i].outcome, after});
        ending.told_consequences.back().outcome.tail.clear();
    }
}

}  // namespace ddprun::rendezvous
