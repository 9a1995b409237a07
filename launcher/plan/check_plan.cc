// The plan of a check (check_plan.h).
#include "launcher/plan/check_plan.h"

namespace ddprun::launcher {

void make_check_plan(Plan& plan, const Options& options, const std::vector<std::string>& words) {
    plan.check = true;
    plan.min_nodes = 1;  // the nodes that came report the missing ones
    plan.times.last_call = options.last_call.value_or(kCheckMeeting);
    plan.times.join_timeout = options.join_timeout.value_or(plan.times.last_call * 3 / 2);
    // A late node must not start the check again.
    plan.on_join = rendezvous::OnJoin::spare;
    // A check reports once. A restart, a hang timeout or a hook would only delay or repeat the
    // report.
    plan.max_restarts = {false, 0};
    plan.hang_timeout = {};
    plan.on_failure.clear();
    // One worker per node is enough: the check is about nodes.
    plan.slots = 1;
    plan.worker_cpus.clear();
    plan.worker_variables.clear();
    // The worker reads them as ddprun does.
    plan.slurm_env = slurm::WorkerVariables::keep;
    plan.output = {.log_dir = "",
                   .ranks = {agent::RankOutput{}},
                   .label = agent::Label::none,
                   .prefix_template = "",
                   .stdout_filters = {},
                   .stderr_filters = {},
                   .overflow = plan.output.overflow,
                   .verbosity = options.verbosity > 0 ? 1 : -1};
    plan.command = {.argv = {"/proc/self/exe", kCheckArgument},
                    .python = false,
                    .display = "--check",
                    .first_argument = 1,
                    .collapse_dollars = false};
    plan.command.argv.insert(plan.command.argv.end(), words.begin(), words.end());
    plan.command.first_argument = plan.command.argv.size();  // no ${local_rank} in them
}

}  // namespace ddprun::launcher
