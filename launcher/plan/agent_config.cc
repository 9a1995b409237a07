// Translates the plan into the agent's configuration (agent_config.h).
#include "launcher/plan/agent_config.h"

namespace ddprun::launcher {

rendezvous::Limits limits_of(const Plan& plan) {
    rendezvous::Limits limits;
    limits.min_nodes = plan.min_nodes;
    limits.max_nodes = plan.max_nodes;
    limits.max_restarts =
        plan.max_restarts.automatic ? rendezvous::kAutoRestarts : plan.max_restarts.count;
    limits.crash_loop = plan.crash_loop;
    limits.hang_timeout = plan.hang_timeout;
    limits.blame = plan.blame;
    limits.on_join = plan.on_join;
    limits.join_interval = plan.join_interval;
    limits.order = plan.expected_nodes;
    limits.times = {plan.times.lease, plan.times.join_timeout, plan.times.last_call};
    return limits;
}

rendezvous::Offer offer_of(const JobInput& input, bool leads) {
    const Plan& plan = input.plan;
    rendezvous::Offer offer;
    offer.slots = plan.slots;
    offer.node_rank = plan.node_rank;
    offer.addresses = input.host.local_addresses;
    offer.role = plan.role;
    // One node meets nobody, so nothing needs to be reachable from outside.
    if (plan.max_nodes == 1)
        offer.address = "127.0.0.1";
    else if (plan.local_addr)
        offer.address = *plan.local_addr;
    else if (leads || (plan.task && plan.task->beside_leader))
        offer.address = plan.endpoint.host;
    return offer;
}

bool serves_timers(const JobInput& input) {
    const auto found = input.environment.find("TORCHELASTIC_ENABLE_FILE_TIMER");
    return found != input.environment.end() && found->second == "1";
}

std::string timer_file(const JobInput& input) {
    const auto found = input.environment.find(agent::kTimerVariable);
    if (found == input.environment.end() || found->second.empty()) return "";
    const int task = input.plan.task ? input.plan.task->local_id : 0;
    return task == 0 ? found->second : found->second + "." + std::to_string(task);
}

agent::WorkerPlan worker_plan(const JobInput& input, const rendezvous::NodeId& node) {
    const Plan& plan = input.plan;
    agent::WorkerPlan workers;
    workers.node = node;
    workers.run_id = plan.run_id;
    workers.role = plan.role;
    workers.argv = plan.command.argv;
    workers.first_argument = plan.command.first_argument;
    workers.collapse_dollars = plan.command.collapse_dollars;
    workers.cpus = plan.worker_cpus;
    workers.more = plan.worker_variables;
    workers.signal_names = plan.signal_names;
    workers.environment = input.environment;
    workers.omp_num_threads = plan.omp_num_threads;
    workers.nofile_soft = input.nofile_soft;
    workers.slurm_job_id = input.slurm_job_id;
    workers.slurm_env = plan.slurm_env;
    workers.output.ranks = plan.output.ranks;
    workers.output.label = plan.output.label;
    workers.output.prefix_template = plan.output.prefix_template;
    workers.output.role = plan.role;
    workers.output.hostname = input.host.hostname;
    workers.output.filters = {plan.output.stdout_filters, plan.output.stderr_filters};
    return workers;
}

}  // namespace ddprun::launcher
