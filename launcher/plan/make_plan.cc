// Makes the plan from its parts, and plans ledger, times, signals and stops (make_plan.h).
#include "launcher/plan/make_plan.h"

#include <algorithm>
#include <string_view>

#include "launcher/options/option_table.h"
#include "launcher/options/signal_names.h"
#include "launcher/plan/plan_meeting.h"
#include "launcher/plan/plan_output.h"
#include "launcher/plan/plan_workers.h"

namespace ddprun::launcher {
namespace {

using slurm::Allocation;

// Slurm kills 30 s after SIGTERM by default (KillWait). The stop must be over before that.
constexpr Duration kFinalStopInSlurm = std::chrono::seconds{25};

// Cluster and job come first even if the user gave a run id, because one run id may stand in many
// scripts.
std::string ledger_name(const Plan& plan, const std::optional<Allocation>& allocation) {
    if (!allocation) return plan.run_id;
    const std::string job =
        (allocation->cluster.empty() ? "" : allocation->cluster + ".") + allocation->job_id;
    const bool has_job = plan.run_id == job || plan.run_id.starts_with(job + ".");
    return has_job ? plan.run_id : job + "." + plan.run_id;
}

// A job of one node needs a ledger only for the next allocation of the same job, which must not
// train beside this one. A job that salloc or srun has begun never goes back into the queue.
bool may_come_again(const Options& options, const Allocation& allocation) {
    return allocation.batch_job && !options.check;
}

MaybeError plan_etcd(Plan& plan, const Options& options) {
    rendezvous::EtcdFiles& files = plan.ledger.etcd;
    files = {options.etcd_user_file.value_or(""), options.etcd_cacert.value_or(""),
             options.etcd_cert.value_or(""), options.etcd_key.value_or("")};
    if (const auto good = check_etcd_files(files, plan.ledger.place); !good) return good.error();
    if (files.any() && !is_in_etcd(plan.ledger.place))
        plan.warnings.push_back(
            "--etcd-user-file, --etcd-cacert, --etcd-cert and --etcd-key have no effect, because "
            "the ledger is not in etcd; see --ledger");
    else if (!files.user.empty() && !plan.ledger.place.tls)
        plan.warnings.push_back(
            "the password of --etcd-user-file goes over the network as plain text; "
            "--ledger=etcds:HOST:PORT encrypts");
    return std::nullopt;
}

MaybeError plan_ledger(Plan& plan, const Options& options,
                       const std::optional<Allocation>& allocation, const HostFacts& host) {
    rendezvous::LedgerPlace place;
    plan.ledger.chosen = options.ledger.has_value();
    if (options.ledger) {
        place = *options.ledger;
    } else if (allocation && (plan.limits.max_nodes > 1 || may_come_again(options, *allocation))) {
        // The working directory, not the one of sbatch: --chdir may have left a read-only place on
        // purpose.
        const std::string& parent =
            host.working_directory.empty() ? allocation->submit_directory : host.working_directory;
        if (!parent.empty())
            place = rendezvous::in_folder(parent + (parent.ends_with('/') ? "" : "/") + ".ddprun");
    }
    auto of_job = rendezvous::of_job(
        // A check must neither continue the ledger of the job nor leave its own in the job's way.
        std::move(place), ledger_name(plan, allocation) + (options.check ? ".check" : ""));
    if (!of_job) return of_job.error();
    plan.ledger.place = std::move(*of_job);
    if (auto error = plan_etcd(plan, options)) return error;
    // Only where the user did not choose memory, and only from nodes that may lead: the ledger of
    // the others is the leader's.
    if (!is_shared(plan.ledger.place) && !plan.ledger.chosen && plan.limits.max_nodes > 1 &&
        plan.lead != Lead::no)
        plan.warnings.push_back(
            "the ledger is in memory, so the loss of the leader's node will end the job and lose "
            "its history; give --ledger=directory:PATH (a folder that all nodes share) or "
            "--ledger=etcd:HOST:PORT, so that another node can take over");
    return std::nullopt;
}

// Options of ddprun have priority over the same settings in --rdzv-conf, and these over the
// defaults.
void plan_times(Plan& plan, const Options& options, bool in_step) {
    constexpr Duration kLeastLease =
        std::chrono::seconds{2};  // half of it is the harmless stall: 1 s
    const RdzvConf& conf = options.rdzv_conf;
    rendezvous::Times& times = plan.limits.times;
    if (conf.lease) times.lease = std::max(*conf.lease, kLeastLease);
    if (conf.lease && *conf.lease < kLeastLease)
        plan.warnings.push_back(
            "--rdzv-conf: keep_alive_interval times keep_alive_max_attempt is below 2 s, which "
            "would end healthy jobs; using a lease of 2 s");
    // --lease itself is checked by the parser, which refuses less than 2 s.
    times.lease = options.lease.value_or(times.lease);
    times.join_timeout =
        options.join_timeout.value_or(conf.join_timeout.value_or(times.join_timeout));
    const bool is_static = options.rdzv_backend.value_or("static") == "static";
    // torchrun reads this key with the static backend only.
    if (is_static && conf.static_timeout && !options.join_timeout && !conf.join_timeout)
        times.join_timeout = *conf.static_timeout;
    times.last_call = options.last_call.value_or(conf.last_call.value_or(times.last_call));
    times.requeue_wait = options.requeue_wait.value_or(times.requeue_wait);
    if (in_step) plan.grace.final_stop = kFinalStopInSlurm;
    if (options.shutdown_timeout)
        plan.grace.final_stop = plan.grace.restart = *options.shutdown_timeout;
}

// A signal that stops the job reaches the workers with the stop. So a signal is either in `signals`
// or in `passed_on`, never in both.
void plan_signals(Plan& plan, const Options& options) {
    plan.signals = always_handled();
    for (int number : options.signals)
        if (std::ranges::find(plan.signals, number) == plan.signals.end())
            plan.signals.push_back(number);
    for (int number : passed_on_unless_named())
        if (std::ranges::find(plan.signals, number) == plan.signals.end())
            plan.passed_on.push_back(number);
    plan.workers.signal_names = options.signal_names.empty()
                                    ? std::string(option_row("signals-to-handle").default_text)
                                    : options.signal_names;
}

// Slurm's part of the stop: `step` is where the step's times are asked.
void stop_in_slurm(Plan& plan, const Options& options, std::string step,
                   std::optional<std::int64_t> end_time) {
    plan.stop.in_slurm = true;
    plan.stop.requeue = options.requeue.value_or(agent::RequeueMode::automatic);
    plan.job_end = end_time;
    // Older versions of Slurm do not set the variable, and no variable tells the step's limit.
    plan.stop.ask_job_end = true;
    plan.slurm_step_id = std::move(step);
}

// Without srun ddprun leaves the job alone unless the user asks for it: the script may have more to
// do. A job of several nodes has other scripts or steps, which a requeue would end.
void plan_stop_without_srun(Plan& plan, const Options& options, const HostFacts& host) {
    const bool wants = !options.requeue_signals.empty() || options.requeue.has_value();
    if (!wants || options.requeue == agent::RequeueMode::never || options.check) return;
    if (host.script_job && plan.limits.max_nodes == 1) {
        plan.slurm_restart_count = host.script_job->restart_count;
        plan.grace.final_stop = options.shutdown_timeout.value_or(kFinalStopInSlurm);
        plan.workers.run =
            host.script_job->name + ".batch" + (options.rdzv_id ? "." + *options.rdzv_id : "");
        return stop_in_slurm(plan, options, "batch", host.script_job->end_time);
    }
    plan.warnings.push_back(
        "--requeue and --requeue-signal requeue nothing here: ddprun was started neither by srun "
        "nor by the batch script of a job of one node; requeue the job when ddprun exits with 75");
}

MaybeError plan_stop(Plan& plan, const Options& options,
                     const std::optional<Allocation>& allocation, const HostFacts& host) {
    agent::StopOptions& stop = plan.stop;
    stop.before = options.stop_before;
    stop.worker_signal = options.stop_signal;
    stop.requeue_signals = options.requeue_signals;
    plan.requeue_begin = options.requeue_begin;
    // A user cancels a job with these signals (scancel, Ctrl-C). A requeue after them would start
    // the job again, against the user's wish.
    const std::vector<int> cancelling = always_handled();
    for (const int number : stop.requeue_signals) {
        if (std::ranges::find(cancelling, number) != cancelling.end())
            return usage_error(
                "--requeue-signal: SIGTERM, SIGINT, SIGHUP and SIGQUIT also cancel jobs; "
                "give another, such as USR1, and name it in sbatch --signal too");
        // A signal that the user names for the requeue stops the job, so it is not passed on to the
        // workers.
        std::erase(plan.passed_on, number);
        if (std::ranges::find(plan.signals, number) == plan.signals.end())
            plan.signals.push_back(number);
    }
    const bool elastic = plan.limits.min_nodes < plan.limits.max_nodes;
    if (options.leaves_on_sigterm.value_or(false) && !elastic)
        return usage_error(
            "--on-sigterm=leave: no node can leave a job that needs all its nodes; give "
            "--nnodes=MIN:MAX, or leave the option out");
    stop.leaves = options.leaves_on_sigterm.value_or(elastic && !allocation);
    if (!allocation) {
        plan_stop_without_srun(plan, options, host);
        return std::nullopt;
    }
    stop_in_slurm(plan, options, allocation->step_id, allocation->end_time);
    // A job of one node usually runs on the host of its batch script, and is lost with it.
    plan.end_headless = options.end_headless && plan.limits.max_nodes > 1;
    plan.srun_address = allocation->launch_node_address;
    return std::nullopt;
}

}  // namespace

Result<Plan> make_plan(const Options& options, const std::optional<Allocation>& allocation,
                       const HostFacts& host) {
    Plan plan;
    plan.warnings = options.warnings;
    // The order matters: slots need the node range, shares need the slots, and the ledger's name
    // needs the run id.
    if (auto error = plan_meeting(plan, options, allocation, host)) return *error;
    if (auto error = plan_slots(plan, options, allocation, host)) return *error;
    if (auto error = plan_shares(plan, options, allocation, host)) return *error;
    if (auto error = plan_address(plan, options, host)) return *error;
    if (auto error = plan_ledger(plan, options, allocation, host)) return *error;
    // The job keeps its id when it is requeued, also where its ledger is not kept. Where nodes meet
    // across steps, one that the batch script starts does not know the job, so none uses it.
    if (allocation && !plan.limits.order.empty()) plan.workers.run = ledger_name(plan, allocation);
    plan.identity = {options.identity.value_or(rendezvous::IdentityMode::automatic),
                     options.secret_file.value_or("")};
    // On a cluster any user may reach a node's port. There MUNGE or the ledger's folder nearly
    // always give a secret, so a job that has none is refused rather than opened to everybody.
    if (allocation && plan.limits.max_nodes > 1 &&
        plan.identity.mode == rendezvous::IdentityMode::automatic)
        plan.identity.mode = rendezvous::IdentityMode::require;
    if (plan.identity.mode == rendezvous::IdentityMode::none && options.secret_file)
        return usage_error("--identity=none with --secret-file: leave one of them out");
    // torchrun's own default is 0 restarts.
    plan.limits.max_restarts =
        options.max_restarts.value_or(host.called_as_torchrun ? 0 : rendezvous::kAutoRestarts);
    // Who names a number of restarts wants them, so a crash loop is seen later there.
    plan.limits.crash_loop = options.crash_loop.value_or(
        plan.limits.max_restarts == rendezvous::kAutoRestarts ? 2 : plan.limits.crash_loop);
    plan.limits.hang_timeout = options.hang_timeout.value_or(plan.limits.hang_timeout);
    plan.limits.hang_auto = options.hang_auto;
    plan.limits.blame = options.blame.value_or(plan.limits.blame);
    plan.limits.on_join = options.on_join.value_or(plan.limits.on_join);
    plan.limits.join_interval = options.join_interval.value_or(plan.limits.join_interval);
    plan_times(plan, options, allocation.has_value());
    plan.grace.killed = options.unkillable_timeout.value_or(plan.grace.killed);
    // torchrun leaves them alone. In Slurm the end of the step ends them.
    if (options.wait_for_helpers || (host.called_as_torchrun && !allocation))
        plan.grace.helpers = options.wait_for_helpers;
    plan.on_failure = options.on_failure.value_or("");
    plan.on_event = options.on_event.value_or("");
    plan_command(plan, options, host);
    plan.workers.role = options.role.value_or(plan.workers.role);
    plan.workers.slurm_env = options.slurm_env.value_or(plan.workers.slurm_env);
    // After the slots and the role, which it reads (plan_output.h).
    plan_output(plan, options, host);
    plan_signals(plan, options);
    if (auto error = plan_stop(plan, options, allocation, host)) return *error;
    plan.store_allow = options.store_allow;
    plan.store_limits = options.store_limits;
    return plan;
}

}  // namespace ddprun::launcher
