// Goes through the entries of a ledger in order (time_spent.h).
#include "launcher/ctl/time_spent.h"

#include <algorithm>

namespace ddprun::launcher {
namespace {

using rendezvous::LedgerEntry;
using rendezvous::RestartPhase;

Duration sum(const LedgerEntry& entry, RestartPhase from, RestartPhase to) {
    Duration all{};
    for (auto i = static_cast<std::size_t>(from); i <= static_cast<std::size_t>(to); ++i)
        all += entry.restart.times[i].took;
    return all;
}

// The time between a generation's entry and the one that follows it. Both clocks, that of the file
// server and that of the leader, may differ a little, so no part gets more than there is.
void share_out(TimeSpent& spent, const LedgerEntry& next, Duration between) {
    using enum RestartPhase;
    const Duration starting = std::min(sum(next, started, progress), between);
    const Duration restarting = std::min(sum(next, detected, met), between - starting);
    spent.starting += starting;
    spent.restarting += restarting;
    spent.training += between - starting - restarting;
}

}  // namespace

TimeSpent time_spent(const std::vector<rendezvous::DatedEntry>& entries, Duration begun) {
    TimeSpent spent;
    Duration at = begun;
    bool under_way = false;  // a generation
    for (const auto& [entry, written] : entries) {
        if (entry.takes_over()) continue;
        const Duration between = std::max(written - at, Duration{});
        at += between;
        if (!under_way)
            spent.waiting += between;
        else if (entry.allocation())
            spent.unknown += between;
        else
            share_out(spent, entry, between);
        under_way = entry.makes_generation();
    }
    return spent;
}

}  // namespace ddprun::launcher
