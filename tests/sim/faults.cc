// Names of the faults, and plans of faults drawn at random.
#include "tests/sim/faults.h"

#include <algorithm>

namespace ddprun::sim {

namespace {

// The last enumerator of plan_faults gives the number of kinds. A new kind must come before it.
constexpr int kKinds = static_cast<int>(Fault::Kind::ledger_stalls_here) + 1;

// Whether the text says how long the fault lasts. The kinds with a duration stand together,
// process_replaced apart.
bool needs_time(Fault::Kind kind) {
    return (kind >= Fault::Kind::host_paused && kind <= Fault::Kind::ledger_stalls_here) ||
           kind == Fault::Kind::process_replaced || kind == Fault::Kind::job_suspended;
}

}  // namespace

const char* to_string(Fault::Kind kind) {
    switch (kind) {
        case Fault::Kind::worker_fails:
            return "worker_fails";
        case Fault::Kind::workers_stubborn:
            return "workers_stubborn";
        case Fault::Kind::keeper_dies:
            return "keeper_dies";
        case Fault::Kind::warm_start_differs:
            return "warm_start_differs";
        case Fault::Kind::job_suspended:
            return "job_suspended";
        case Fault::Kind::keeper_freezes:
            return "keeper_freezes";
        case Fault::Kind::stop_asked:
            return "stop_asked";
        case Fault::Kind::process_killed:
            return "process_killed";
        case Fault::Kind::process_replaced:
            return "process_replaced";
        case Fault::Kind::step_killed:
            return "step_killed";
        case Fault::Kind::host_lost:
            return "host_lost";
        case Fault::Kind::host_paused:
            return "host_paused";
        case Fault::Kind::host_suspended:
            return "host_suspended";
        case Fault::Kind::process_frozen:
            return "process_frozen";
        case Fault::Kind::connection_dropped:
            return "connection_dropped";
        case Fault::Kind::connection_reset:
            return "connection_reset";
        case Fault::Kind::cut_off:
            return "cut_off";
        case Fault::Kind::cut_from_others:
            return "cut_from_others";
        case Fault::Kind::cut_to_others:
            return "cut_to_others";
        case Fault::Kind::split:
            return "split";
        case Fault::Kind::split_one_way:
            return "split_one_way";
        case Fault::Kind::host_refuses:
            return "host_refuses";
        case Fault::Kind::ledger_stalls_here:
            return "ledger_stalls_here";
        case Fault::Kind::ledger_stalls:
            return "ledger_stalls";
        case Fault::Kind::entry_vanishes:
            return "entry_vanishes";
        case Fault::Kind::operator_stops:
            return "operator_stops";
        case Fault::Kind::operator_restarts:
            return "operator_restarts";
        case Fault::Kind::operator_drains:
            return "operator_drains";
        case Fault::Kind::operator_sets_limits:
            return "operator_sets_limits";
        case Fault::Kind::operator_asks_snapshot:
            return "operator_asks_snapshot";
        case Fault::Kind::operator_stops_later:
            return "operator_stops_later";
    }
    return "?";
}

std::string to_text(const Fault& fault) {
    return std::string(to_string(fault.kind)) + " on host " + std::to_string(fault.host) +
           (needs_time(fault.kind) ? " for " + ddprun::to_text(fault.lasts) : "");
}

rendezvous::OperatorLimits limits_of(int host) {
    rendezvous::OperatorLimits limits{
        .min_nodes = 1 + host / 2, .max_nodes = 1 + host, .max_restarts = {}, .by = "operator"};
    if (host % 2 == 1) limits.max_restarts = host;
    return limits;
}

std::vector<Fault> plan_faults(Random& random, int hosts, Duration lease, Duration horizon) {
    std::vector<Fault> plan;
    // Jobs without any fault must work, too.
    if (random.chance(0.1)) return plan;
    // Half of the plans have one moment around which all faults happen, within 0.6 of a lease: long
    // enough for a leader to be lost and searched for. Not before 0.05 of a lease, when the first
    // processes start.
    const Duration focus = random.span(share(lease, 0.2), horizon);
    const bool focused = random.chance(0.5);
    const int kinds = random.between(1, 5);
    for (int i = 0; i < kinds; ++i) {
        const auto kind = static_cast<Fault::Kind>(random.below(kKinds));
        for (int times = random.between(1, 3); times > 0; --times) {
            Fault fault;
            fault.kind = kind;
            fault.host = random.below(hosts);
            const Duration at = focused ? focus + share(lease, random.real(-0.6, 0.6))
                                        : random.span(share(lease, 0.05), horizon);
            fault.at = Time{std::clamp(at, share(lease, 0.05), horizon)};
            // Three ranges: shorter than the stall that harms nobody (half a lease), about as long
            // as the lease, and longer than a loss takes to be handled.
            const int length = random.below(3);
            fault.lasts = length == 0   ? share(lease, random.real(0.02, 0.5))
                          : length == 1 ? share(lease, random.real(0.5, 1.5))
                                        : share(lease, random.real(1.0, 3.0));
            // The leader's host, and the next in the order, matter most.
            if (random.chance(0.25)) fault.host = random.below(std::min(hosts, 2));
            plan.push_back(fault);
        }
    }
    return plan;
}

std::vector<Fault> plan_operators(Random& random, int hosts, Duration horizon) {
    std::vector<Fault> plan;
    if (random.chance(0.5)) return plan;
    for (int times = random.between(1, 4); times > 0; --times) {
        const int kind = random.below(10);
        Fault fault;
        fault.kind = kind == 0   ? Fault::Kind::operator_stops
                     : kind <= 5 ? Fault::Kind::operator_restarts
                                 : Fault::Kind::operator_drains;
        fault.host = random.below(hosts);
        fault.at = Time{random.span(horizon / 50, horizon)};
        plan.push_back(fault);
        // His program repeats it.
        if (random.chance(0.5)) plan.push_back(fault);
    }
    return plan;
}

std::vector<Fault> plan_wishes(Random& random, int hosts, Duration horizon) {
    std::vector<Fault> plan;
    if (random.chance(0.5)) return plan;
    for (int times = random.between(1, 4); times > 0; --times) {
        const int kind = random.below(10);
        Fault fault;
        fault.kind = kind == 0   ? Fault::Kind::operator_stops_later
                     : kind <= 2 ? Fault::Kind::operator_asks_snapshot
                                 : Fault::Kind::operator_sets_limits;
        fault.host = random.below(hosts);
        fault.at = Time{random.span(horizon / 50, horizon)};
        plan.push_back(fault);
        if (random.chance(0.5)) plan.push_back(fault);
    }
    return plan;
}

}  // namespace ddprun::sim
