// The plan of a check (check_plan.h).
#include "launcher/plan/check_plan.h"

namespace ddprun::launcher {

void make_check_plan(Plan& plan, const Options& options, const std::string& program,
                     const std::vector<std::string>& words) {
    plan.check = true;
    plan.limits.min_nodes = 1;  // the nodes that came report the missing ones
    plan.limits.times.last_call = options.last_call.value_or(kCheckMeeting);
    plan.limits.times.join_timeout =
        options.join_timeout.value_or(plan.limits.times.last_call * 3 / 2);
    // A late node must not start the check again.
    plan.limits.on_join = rendezvous::OnJoin::spare;
    plan.stop.leaves = false;
    // A check reports once. A restart, a hang timeout or a hook would only delay or repeat the
    // report.
    plan.limits.max_restarts = 0;
    plan.limits.hang_timeout = {};
    plan.limits.hang_auto = false;
    plan.on_failure.clear();
    plan.on_event.clear();
    // One worker per node is enough: the check is about nodes.
    plan.slots = 1;
    plan.workers.cpus.clear();
    plan.workers.more.clear();
    // The worker reads them as ddprun does.
    plan.workers.slurm_env = slurm::WorkerVariables::keep;
    plan.log_dir.clear();
    plan.workers.output = {};
    plan.workers.output.ranks = {agent::RankOutput{}};
    plan.workers.output.label = agent::Label::none;
    plan.warm = agent::warm::Mode::off;
    plan.workers.pmi = plan.limits.pmi = false;
    plan.recorders = {};
    plan.workers.framework_stop = false;
    plan.workers.set_aside_torn.clear();
    plan.verbosity = options.verbosity > 0 ? 1 : -1;
    plan.program = {.python = false, .display = "--check"};
    plan.workers.argv = {program, kCheckArgument};
    plan.workers.argv.insert(plan.workers.argv.end(), words.begin(), words.end());
    plan.workers.first_argument = plan.workers.argv.size();  // no ${local_rank} in them
    plan.workers.collapse_dollars = false;
}

}  // namespace ddprun::launcher
