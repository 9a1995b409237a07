#include "launcher/plan.h"

#include <algorithm>
#include <string_view>

#include "launcher/plan_meeting.h"

namespace ddprun::launcher {
namespace {

using MaybeError = std::optional<Error>;
using slurm::Allocation;
using std::chrono::milliseconds;

Error usage(std::string sentence) { return Error(ErrorCode::usage, std::move(sentence)); }

// Entries up to the first that names no device, which is where CUDA stops reading too.
int devices_listed(std::string_view list) {
    int count = 0;
    while (!list.empty()) {
        std::string_view entry = list.substr(0, list.find(','));
        if (entry.empty() || entry.starts_with('-') || entry == "NoDevFiles") break;
        ++count;
        list.remove_prefix(std::min(entry.size() + 1, list.size()));
    }
    return count;
}

// A list of devices says it exactly. Without one all of the host's are visible, but for a step that
// holds fewer; and a step may hold GPUs that this host shows in no place we know.
int visible_gpus(const std::optional<Allocation>& allocation, const HostFacts& host) {
    auto list = host.cuda_visible_devices;
    if (!list && allocation) list = allocation->visible_devices;
    if (list) return devices_listed(*list);
    if (!allocation || !allocation->gpus_on_node) return host.gpus;
    int held = *allocation->gpus_on_node;
    return host.gpus == 0 ? held : std::min(held, host.gpus);
}

// A cluster that does not manage its GPUs looks the same as a step that asked for none on one that
// does.
bool gpus_not_from_slurm(const std::optional<Allocation>& allocation, const HostFacts& host) {
    return allocation && !allocation->gpus_on_node && !allocation->visible_devices &&
           !host.cuda_visible_devices && host.gpus > 0;
}

MaybeError plan_slots(Plan& plan, const Options& options,
                      const std::optional<Allocation>& allocation, const HostFacts& host) {
    using Kind = WorkersPerNode::Kind;
    int gpus = visible_gpus(allocation, host), cpus = std::max(host.cpus, 1);
    if (!options.nproc_per_node) {
        plan.slots = host.called_as_torchrun || gpus == 0 ? 1 : gpus;
        if (!host.called_as_torchrun)
            plan.notes.push_back(
                gpus == 0 ? "no GPU found: one worker on this node; --nproc-per-node says otherwise"
                          : "one worker for each of " + std::to_string(gpus) + " GPUs");
    } else {
        switch (options.nproc_per_node->kind) {
            case Kind::count:
                plan.slots = options.nproc_per_node->count;
                break;
            case Kind::cpu:
                plan.slots = cpus;
                break;
            case Kind::automatic:
                plan.slots = gpus > 0 ? gpus : cpus;
                break;
            case Kind::gpu:
                if (gpus == 0)
                    return usage("--nproc-per-node=gpu: no GPU is visible on " + plan.node_name +
                                 "; ask Slurm for --gpus-per-node, or give a count or cpu");
                plan.slots = gpus;
                break;
        }
    }
    bool by_gpus = plan.slots == gpus &&
                   !(options.nproc_per_node && options.nproc_per_node->kind == Kind::count);
    if (by_gpus && gpus_not_from_slurm(allocation, host))
        plan.host_warnings.push_back(
            "Slurm gave this step no GPU, but " + plan.node_name + " shows " +
            std::to_string(gpus) +
            ", which are used; ask for --gpus-per-node, or give --nproc-per-node");
    if (gpus > 0 && plan.slots > gpus)
        plan.host_warnings.push_back(std::to_string(plan.slots) + " workers, but " +
                                     std::to_string(gpus) + (gpus == 1 ? " GPU is" : " GPUs are") +
                                     " visible on " + plan.node_name +
                                     (allocation && allocation->gpus_per_task
                                          ? "; use --gpus-per-node rather than --gpus-per-task"
                                          : "; some will share one"));
    if (!host.omp_num_threads_set) {
        plan.omp_num_threads = std::max(1, cpus / plan.slots);
        plan.notes.push_back("OMP_NUM_THREADS=" + std::to_string(*plan.omp_num_threads) +
                             " for each worker (" + std::to_string(cpus) + " CPUs, " +
                             std::to_string(plan.slots) + " workers); set it to choose another");
    }
    return std::nullopt;
}

// A run id may hold anything; a folder's name may not.
std::string folder_name(std::string_view run_id) {
    std::string name;
    for (char c : run_id) {
        bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                     c == '-' || c == '_' || (c == '.' && !name.empty());
        name += plain ? c : '_';
    }
    return name;
}

void plan_ledger(Plan& plan, const Options& options, const std::optional<Allocation>& allocation,
                 const HostFacts& host) {
    using Kind = LedgerChoice::Kind;
    std::string parent;
    if (options.ledger) {
        plan.ledger.kind = options.ledger->kind;
        plan.ledger.chosen = true;
        parent = options.ledger->path;
    } else if (allocation && plan.max_nodes > 1) {
        // The working directory, not the one of sbatch: --chdir may have left a read-only place on
        // purpose.
        parent =
            host.working_directory.empty() ? allocation->submit_directory : host.working_directory;
        plan.ledger.kind = parent.empty() ? Kind::memory : Kind::directory;
        parent += parent.ends_with('/') ? ".ddprun" : "/.ddprun";
    }
    if (plan.ledger.kind == Kind::directory)
        plan.ledger.directory =
            parent + (parent.ends_with('/') ? "" : "/") + folder_name(plan.run_id);
    if (plan.ledger.kind == Kind::memory && !plan.ledger.chosen && plan.max_nodes > 1 &&
        plan.lead != Lead::no)  // it is the leader's
        plan.warnings.push_back(
            "the loss of the leader's node will end the job, and its history with it, since the "
            "ledger is in memory; with --ledger=directory:PATH, a folder that all nodes share, "
            "another node takes over");
}

void plan_times(Plan& plan, const Options& options, bool in_step) {
    constexpr milliseconds kLeastLease(2000);  // design 4.4: less than 1 s of stall is refused
    const RdzvConf& conf = options.rdzv_conf;
    Times& times = plan.times;
    if (conf.lease) times.lease = std::max(*conf.lease, kLeastLease);
    if (conf.lease && *conf.lease < kLeastLease)
        plan.warnings.push_back(
            "--rdzv-conf: keep_alive_interval times keep_alive_max_attempt is below 2 s, which "
            "would end healthy jobs; the lease is 2 s");
    times.lease = options.lease.value_or(times.lease);
    times.join_timeout =
        options.join_timeout.value_or(conf.join_timeout.value_or(times.join_timeout));
    times.last_call = options.last_call.value_or(conf.last_call.value_or(times.last_call));
    if (in_step) times.grace_signal = milliseconds(25'000);
    if (options.shutdown_timeout)
        times.grace_final = times.grace_signal = times.grace_restart = *options.shutdown_timeout;
}

// torchrun runs everything by Python but for --no-python; ddprun goes by the name, so that a C++
// worker needs no option.
bool runs_by_python(const Options& options, const HostFacts& host) {
    if (options.no_python) return options.run_path;  // as in torchrun, --run-path beats --no-python
    return options.module || options.run_path || options.python || host.called_as_torchrun ||
           options.program.ends_with(".py");
}

void plan_command(Plan& plan, const Options& options, const HostFacts& host) {
    WorkerCommand& command = plan.command;
    command.python = runs_by_python(options, host);
    command.display = options.program;
    if (command.python) {
        command.argv = {options.python.value_or(host.python_exec.value_or("python3")), "-u"};
        if (options.module) command.argv.push_back("-m");
        plan.notes.push_back("the interpreter of the workers is " + command.argv.front());
    }
    command.argv.push_back(options.program);
    command.argv.insert(command.argv.end(), options.arguments.begin(), options.arguments.end());
}

void plan_output(Plan& plan, const Options& options) {
    plan.output.log_dir = options.log_dir;
    plan.output.redirects = options.redirects;
    plan.output.tee = options.tee;
    plan.output.local_ranks_filter = options.local_ranks_filter;
    plan.output.label = options.label.value_or(plan.slots > 1 || plan.max_nodes > 1);
    plan.output.verbosity = options.verbosity;
}

}  // namespace

Result<Plan> make_plan(const Options& options, const std::optional<Allocation>& allocation,
                       const HostFacts& host) {
    Plan plan;
    plan.warnings = options.warnings;
    if (auto error = plan_meeting(plan, options, allocation, host)) return *error;
    if (auto error = plan_slots(plan, options, allocation, host)) return *error;
    plan.local_addr = options.local_addr;
    plan_ledger(plan, options, allocation, host);
    plan.identity = {options.identity.value_or(rendezvous::IdentityMode::automatic),
                     options.secret_file.value_or("")};
    if (plan.identity.mode == rendezvous::IdentityMode::none && options.secret_file)
        return Error(ErrorCode::usage, "--identity=none with --secret-file: leave one of them out");
    plan.max_restarts = options.max_restarts.value_or(
        host.called_as_torchrun ? RestartLimit{false, 0} : RestartLimit{});
    plan.crash_loop = options.crash_loop.value_or(plan.crash_loop);
    plan.on_join = options.on_join.value_or(plan.on_join);
    plan.join_interval = options.join_interval.value_or(plan.join_interval);
    plan_times(plan, options, allocation.has_value());
    plan_command(plan, options, host);
    plan_output(plan, options);
    plan.role = options.role.value_or(plan.role);
    plan.store_allow = options.store_allow;
    plan.store_limits = options.store_limits;
    return plan;
}

const char* to_string(Lead lead) {
    switch (lead) {
        case Lead::yes:
            return "yes";
        case Lead::no:
            return "no";
        case Lead::if_address_matches:
            return "if_address_matches";
    }
    return "no";
}

}  // namespace ddprun::launcher
