// Groups workers by what they do and where.
#include "diagnosis/standstill/still_kinds.h"

#include <algorithm>

namespace ddprun::agent {

using rendezvous::Doing;
using rendezvous::Still;

namespace {

Still still_of(Time now, std::size_t index, const StillWorker& worker) {
    Still still{.workers = std::uint64_t{1} << index,
                .doing = worker.doing(),
                .lasted = worker.lasted(now),
                .usual = worker.usual(),
                .place = worker.place()};
    // Only of one in a collective the connections tell something, and only of one outside, what
    // moves in it.
    if (still.doing == Doing::in_collective) {
        still.lost_from = worker.lost().from;
        still.lost_to = worker.lost().to;
    } else if (still.doing == Doing::meets) {
        // It stood still before it came, too.
        still.lasted = std::min(still.lasted, worker.met_for(now));
    } else {
        still.unmoved = worker.unmoved(now);
    }
    return still;
}

// In two samples, which come once a second.
constexpr auto kForAMoment = std::chrono::milliseconds{700};

}  // namespace

bool all_stand_still(Time now, const std::vector<StillWorker>& workers) {
    return std::ranges::all_of(
        workers, [now](const StillWorker& worker) { return worker.lasted(now) >= kStillFor; });
}

bool all_in_collectives(Time now, const std::vector<StillWorker>& workers) {
    bool any = false;
    for (const StillWorker& worker : workers) {
        if (worker.doing() == Doing::has_ended) continue;
        any = true;
        if (!worker.in_collective() || !worker.idles() || worker.lasted(now) < kForAMoment)
            return false;
    }
    return any;
}

std::vector<Still> still_kinds(Time now, const std::vector<StillWorker>& workers) {
    if (workers.size() > rendezvous::kStillWorkers || !all_stand_still(now, workers)) return {};
    std::vector<Still> kinds;
    for (std::size_t i = 0; i < workers.size(); ++i) {
        const StillWorker& worker = workers[i];
        const Still still = still_of(now, i, worker);
        const auto same = std::ranges::find_if(kinds, [&](const Still& kind) {
            return kind.doing == still.doing && kind.place == still.place &&
                   kind.lost_from == still.lost_from && kind.lost_to == still.lost_to;
        });
        if (same == kinds.end()) {
            kinds.push_back(still);
            continue;
        }
        same->workers |= still.workers;
        // They meet since the first one has come.
        same->lasted = still.doing == Doing::meets ? std::max(same->lasted, still.lasted)
                                                   : std::min(same->lasted, still.lasted);
        same->unmoved = std::min(same->unmoved, still.unmoved);
        same->usual = std::max(same->usual, still.usual);
    }
    if (kinds.size() > rendezvous::kStillKinds) return {};
    return kinds;
}

}  // namespace ddprun::agent
