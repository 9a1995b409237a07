// Restart or give up: crash loop first, then how far the job got, then the budget
// (restart_policy.h).
#include "rendezvous/rules/restart_policy.h"

#include "base/exit_code.h"
#include "base/python_exception.h"

namespace ddprun::rendezvous {
namespace {

// Why the default restarts, after the first of its restarts. A generation also counts as met when
// its workers have run for a time without calling the store (agent/parts/headway.h).
std::string automatic_reason(Reach reach) {
    const std::string option = " (--max-restarts=auto: ";
    if (reach == Reach::progressed) return option + "the workers had made progress)";
    if (reach == Reach::met) return option + "the workers had met, or run for half a minute)";
    return option + "the workers of an earlier generation had met)";
}

// As PyTorch of different ages says it.
bool lacks_gpu(const std::string& exception) {
    return exception.find("ProcessGroupNCCL is only supported with GPUs") != std::string::npos ||
           exception.find("nccl2 requires at least one CUDA device") != std::string::npos;
}

std::string exception_of(const WorkerOutcome& failure) {
    return failure.error.empty() ? python_exception(failure.tail) : failure.error;
}

}  // namespace

std::string cause_key(const WorkerOutcome& failure) {
    const std::string code =
        std::to_string(failure.exit_code) + "/" + std::to_string(failure.signal) + "/";
    const std::string error = exception_of(failure);
    if (!failure.hung && !error.empty()) return code + error;
    return std::to_string(failure.rank) + "/" + code + (failure.hung ? "hang" : "");
}

int restart_budget(int max_restarts) { return max_restarts == kAutoRestarts ? 3 : max_restarts; }

RestartDecision decide_restart(RestartHistory& history, const WorkerOutcome& failure, Reach reach,
                               const Limits& limits) {
    history.met |= reach >= Reach::met;
    const bool progressed = reach == Reach::progressed;
    const bool automatic = limits.max_restarts == kAutoRestarts;
    const std::string cause = cause_key(failure);
    // A generation that made progress breaks the row: a fault that appears only after hours is no
    // crash loop.
    history.in_a_row = progressed ? 0 : cause == history.last_cause ? history.in_a_row + 1 : 1;
    history.last_cause = progressed ? "" : cause;

    // A person has ended it, or would have to answer again each time.
    if (ended_in_debugger(failure.error, failure.tail))
        return {false, "no restart: it ended in its debugger (BdbQuit)"};
    // What never ran lacked something of its host: descriptors, memory, permission.
    if (automatic && !history.met && failure.pid == 0 && failure.exit_code == kCannotRunCode)
        return {false,
                "no restart: a worker could not be started at all; see its meaning above "
                "(--max-restarts=N restarts it anyway)"};
    // They meet before NCCL looks for a GPU.
    if (automatic && reach < Reach::progressed && lacks_gpu(exception_of(failure)))
        return {false,
                "no restart: the program wants NCCL, and there is no GPU here (--max-restarts=N "
                "restarts it anyway)"};
    // Before the workers have met, a program runs its own first lines only. What fails there is
    // most likely a bug, and restarts would only hide its error.
    if (automatic && !history.met)
        return {false,
                "no restart: the workers had not all met yet, so the program itself is likely at "
                "fault, such as an import, an argument or a missing file (--max-restarts=N "
                "restarts it anyway)"};
    // The trainer library ends so where the ranks differ in what must be equal, and programs whose
    // command line is wrong. After progress it was right, and what is wrong now may pass.
    if (automatic && !progressed && failure.exit_code == kUsageCode)
        return {false,
                "no restart: exit code 2 says that the program or its arguments must be changed "
                "(--max-restarts=N restarts it anyway)"};
    // What a worker dies of that was forked from a server may be the server's fault.
    if (limits.crash_loop > 0 && history.in_a_row >= limits.crash_loop && !failure.warm)
        return {false, "crash loop: " + std::to_string(history.in_a_row) +
                           " generations in a row failed with the same cause and without progress "
                           "(--crash-loop=N allows more; progress is a line on "
                           "DDPRUN_PROGRESS_FD, or a minute of training)"};
    const int budget = restart_budget(limits.max_restarts);
    const std::string of_budget = " of " + std::to_string(budget);
    if (budget == 0) return {false, "no restart: --max-restarts is 0"};
    if (history.restarts > budget)  // an operator has lowered it
        return {false, "no restart: " + std::to_string(history.restarts) +
                           " are used up, and now " + std::to_string(budget) +
                           " are allowed (ddpctl limits --max-restarts)"};
    if (history.restarts >= budget)
        return {false,
                "restart " + std::to_string(budget) + of_budget + " used up (--max-restarts)"};
    ++history.restarts;
    // The rule is said once, with the first restart that nobody has asked for.
    return {true, "restart " + std::to_string(history.restarts) + of_budget +
                      (automatic && history.restarts == 1 ? automatic_reason(reach) : "")};
}

bool starts_cold(const RestartHistory& history, const Limits& limits) {
    constexpr int kMost = 2;
    return history.in_a_row >= kMost ||
           (limits.crash_loop > 0 && history.in_a_row >= limits.crash_loop);
}

}  // namespace ddprun::rendezvous
