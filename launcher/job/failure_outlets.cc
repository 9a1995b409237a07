// Chooses console, files and the user's program (failure_outlets.h).
#include "launcher/job/failure_outlets.h"

namespace ddprun::launcher {

using rendezvous::Verdict;

FailureOutlets failure_outlets(const JobInput& input, const rendezvous::Ending& ending,
                               const FailureReport& report, bool leads,
                               const std::string& log_folder) {
    // No leader has said when the job ended, so this node ends by itself.
    const bool alone = ending.at == Duration{};
    FailureOutlets outlets;
    outlets.in_a_line = first_on_host(input.plan) || alone;
    // Outside Slurm each node may have a terminal or a log of its own, so each one prints the full
    // report.
    outlets.in_full = !left_debugger(report) && (leads || input.plan.limits.order.empty()) &&
                      (report.first.has_value() || report.lost.has_value());
    outlets.json_file = log_folder.empty() ? "" : log_folder + "/failure.json";
    // A stop that somebody asked for is no failure.
    if (left_debugger(report) || ending.verdict == Verdict::user_signal ||
        ending.verdict == Verdict::work_left || ending.verdict == Verdict::left)
        return outlets;
    if (const auto found = input.environment.find("TORCHELASTIC_ERROR_FILE");
        found != input.environment.end())
        outlets.scheduler_file = found->second;
    if (leads || alone) outlets.program = input.plan.on_failure;
    return outlets;
}

}  // namespace ddprun::launcher
