// Groups workers by what they do and where.
#include "agent/standstill/still_kinds.h"

#include <algorithm>

namespace ddprun::agent {

using rendezvous::Still;

std::vector<Still> still_kinds(Time now, const std::vector<StillWorker>& workers) {
    if (workers.size() > rendezvous::kStillWorkers) return {};
    std::vector<Still> kinds;
    for (std::size_t i = 0; i < workers.size(); ++i) {
        const StillWorker& worker = workers[i];
        if (worker.lasted(now) < kStillFor) return {};
        const Still still{std::uint64_t{1} << i, worker.doing(), worker.lasted(now), worker.usual(),
                          worker.place()};
        const auto same = std::ranges::find_if(kinds, [&](const Still& kind) {
            return kind.doing == still.doing && kind.place == still.place;
        });
        if (same == kinds.end()) {
            kinds.push_back(still);
            continue;
        }
        same->workers |= still.workers;
        same->lasted = std::min(same->lasted, still.lasted);
        same->usual = std::max(same->usual, still.usual);
    }
    if (kinds.size() > rendezvous::kStillKinds) return {};
    return kinds;
}

}  // namespace ddprun::agent
