// Copies the fields of a plan to where the rendezvous machine and the agent expect them.
#include "launcher/job/job_config.h"

#include <unistd.h>

#include <string>

#include "base/release.h"
#include "base/system/boot_clock.h"
#include "base/system/random_bytes.h"
#include "launcher/job/job_ledger.h"
#include "launcher/job/meeting_point.h"
#include "launcher/plan/agent_config.h"

namespace ddprun::launcher {

namespace {

// Slurm gives the end of the job as time of day. The machines use the boot clock, which nobody can
// set, so the time left is taken now.
agent::StopOptions stop_options(const Plan& plan) {
    agent::StopOptions stop = plan.stop;
    if (!plan.job_end) return stop;
    stop.first_left = std::chrono::seconds(*plan.job_end) - day_now();
    stop.job_end = boot_now() + *stop.first_left;
    return stop;
}

}  // namespace

rendezvous::MachineConfig machine_config(const JobInput& input, const rendezvous::NodeId& node) {
    const Plan& plan = input.plan;
    rendezvous::MachineConfig config;
    config.run_id = plan.run_id;
    config.self = node;
    config.succession = shares_ledger(plan);
    config.requeue = plan.slurm_restart_count;
    config.in_slurm = plan.stop.in_slurm;
    config.command_digest = command_digest(plan);
    config.version = this_release().version;
    config.seed = random_number();
    config.limits = plan.limits;
    if (plan.lead == Lead::if_address_matches) config.rivals = rivals_of_step(plan);
    // The difference between the two clocks, so that a pure machine can still print times of day.
    config.to_day = day_now() - boot_now().time_since_epoch();
    config.status_every = plan.status_every;
    config.grace = plan.grace.final_stop;
    if (plan.job_end) config.ends = std::chrono::seconds(*plan.job_end);
    return config;
}

agent::Runner::Config runner_config(const JobInput& input, const rendezvous::NodeId& node,
                                    bool leads) {
    const Plan& plan = input.plan;
    agent::Runner::Config config;
    config.machine.run_id = plan.run_id;
    config.machine.node = node;
    config.machine.requeue = plan.slurm_restart_count;
    config.machine.version = this_release().version;
    config.machine.limits = plan.limits;
    config.machine.unusable = plan.unusable;
    config.machine.join_timeout = plan.limits.times.join_timeout;
    config.machine.grace = plan.grace;
    config.machine.offer = offer_of(input, leads);
    config.machine.leads = leads;
    config.machine.may_lead = shares_ledger(plan);
    config.machine.passed_on = plan.passed_on;
    config.machine.stop = stop_options(plan);
    // At a terminal a second Ctrl-C kills at once; in a batch job repeated signals mean nothing.
    config.machine.at_terminal = ::isatty(STDIN_FILENO) == 1;
    config.workers = worker_plan(input, node);
    config.warm = plan.warm;
    config.recorders = plan.recorders;
    // Workers at a terminal, e.g. a debugger, may read the keyboard.
    config.workers.foreground = config.machine.at_terminal;
    config.workers.by_turns = plan.slots > 1;
    // Nobody outside this host uses the workers' store then, so it listens on loopback only.
    config.serve_timers = serves_timers(input);
    config.timer_file = timer_file(input);
    config.log_dir = plan.log_dir;
    config.temporary_name = input.temporary_name;
    config.lease = plan.limits.times.lease;
    config.uses_grpc = plan.ledger.place.kind == rendezvous::LedgerPlace::Kind::etcd;
    config.store = {
        .one_node = plan.limits.max_nodes == 1 && plan.store_allow.empty(),
        .lease = plan.limits.times.lease,
        .self = {plan.run_id, node, std::string(this_release().version), plan.slurm_restart_count},
        .allow = plan.store_allow,
        .limits = plan.store_limits};
    return config;
}

LogStyle log_style(const Plan& plan) {
    return {plan.limits.max_nodes > 1 ? "ddprun " + plan.node_name : "ddprun", plan.node_name,
            plan.log_times, plan.log_json};
}

Note::Level least_level(const Plan& plan, bool leads) {
    if (plan.verbosity > 0) return Note::Level::debug;
    if (plan.check) return Note::Level::error;  // the check's report says everything
    if (plan.verbosity < -1) return Note::Level::error;
    return leads && plan.verbosity == 0 ? Note::Level::info : Note::Level::warn;
}

}  // namespace ddprun::launcher
