// Restart or give up: crash loop first, then progress, then the budget (restart_policy.h).
#include "rendezvous/rules/restart_policy.h"

namespace ddprun::rendezvous {

std::string cause_key(const WorkerOutcome& failure) {
    return std::to_string(failure.rank) + "/" + std::to_string(failure.exit_code) + "/" +
           std::to_string(failure.signal) + "/" + (failure.hung ? "hang" : failure.error);
}

int restart_budget(int max_restarts) { return max_restarts == kAutoRestarts ? 3 : max_restarts; }

RestartDecision decide_restart(RestartHistory& history, const WorkerOutcome& failure,
                               bool generation_progressed, const Limits& limits) {
    history.progressed |= generation_progressed;
    const std::string cause = cause_key(failure);
    const bool again = !generation_progressed && cause == history.last_cause;
    // A generation that made progress breaks the row: a fault that appears only after hours is no
    // crash loop.
    history.in_a_row = generation_progressed ? 0 : again ? history.in_a_row + 1 : 1;
    history.last_cause = generation_progressed ? "" : cause;

    if (limits.crash_loop > 0 && history.in_a_row >= limits.crash_loop)
        return {false, "crash loop: " + std::to_string(history.in_a_row) +
                           " generations in a row failed with the same cause and without progress "
                           "(--crash-loop)"};
    // A program that never got anywhere most likely has a bug, and restarts would only hide its
    // error.
    if (limits.max_restarts == kAutoRestarts && !history.progressed)
        return {false,
                "no restart: the job has never made progress, so the program itself is likely at "
                "fault (--max-restarts=N restarts it anyway)"};
    const int budget = restart_budget(limits.max_restarts);
    if (budget == 0) return {false, "no restart: --max-restarts is 0"};
    if (history.restarts >= budget)
        return {false,
                "restart " + std::to_string(budget) + " of " + std::to_string(budget) + " used up"};
    ++history.restarts;
    return {true, "restart " + std::to_string(history.restarts) + " of " + std::to_string(budget)};
}

}  // namespace ddprun::rendezvous
