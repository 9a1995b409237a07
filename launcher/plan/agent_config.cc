// What follows from the plan for the agent (agent_config.h).
#include "launcher/plan/agent_config.h"

namespace ddprun::launcher {

rendezvous::Offer offer_of(const JobInput& input, bool leads) {
    const Plan& plan = input.plan;
    rendezvous::Offer offer;
    offer.slots = plan.slots;
    offer.node_rank = plan.node_rank;
    offer.addresses = input.host.local_addresses;
    offer.role = plan.workers.role;
    // One node meets nobody, so nothing needs to be reachable from outside.
    if (plan.limits.max_nodes == 1)
        offer.address = "127.0.0.1";
    else if (plan.local_addr)
        offer.address = *plan.local_addr;
    // The other nodes were given this name, so it reaches them. A task beside the leader is on the
    // same host.
    else if (leads || (plan.task && plan.task->beside_leader))
        offer.address = plan.endpoint.host;
    return offer;
}

// torchrun's own condition: exactly "1", any other value means no.
bool serves_timers(const JobInput& input) {
    const auto found = input.environment.find("TORCHELASTIC_ENABLE_FILE_TIMER");
    return found != input.environment.end() && found->second == "1";
}

// Two tasks on one FIFO would each read a part of the other's requests.
std::string timer_file(const JobInput& input) {
    const auto found = input.environment.find(agent::kTimerVariable);
    if (found == input.environment.end() || found->second.empty()) return "";
    const int task = input.plan.task ? input.plan.task->local_id : 0;
    return task == 0 ? found->second : found->second + "." + std::to_string(task);
}

agent::WorkerPlan worker_plan(const JobInput& input, const rendezvous::NodeId& node) {
    agent::WorkerPlan workers = input.plan.workers;
    workers.node = node;
    if (workers.run_id.empty()) workers.run_id = input.plan.run_id;
    workers.environment = input.environment;
    // Those of a ddprun around this one.
    workers.environment.erase("DDPRUN_FLIGHT_RECORDER");
    workers.environment.erase("DDPRUN_FRAMEWORK_STOP");
    if (workers.framework_stop) workers.environment["DDPRUN_FRAMEWORK_STOP"] = "auto";
    workers.environment.erase("DDPRUN_SET_ASIDE_TORN");
    if (!workers.set_aside_torn.empty())
        workers.environment["DDPRUN_SET_ASIDE_TORN"] = workers.set_aside_torn;
    // ddprun raises its own limit at the start. The workers get back the one that the user has set.
    workers.nofile_soft = input.nofile_soft;
    workers.slurm_job_id = input.slurm_job.spelled();
    workers.output.role = workers.role;
    workers.output.hostname = input.host.hostname;
    return workers;
}

}  // namespace ddprun::launcher
