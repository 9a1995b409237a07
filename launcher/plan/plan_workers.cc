// Plans the workers of one node (plan_workers.h).
#include "launcher/plan/plan_workers.h"

#include <algorithm>
#include <cmath>

#include "agent/host/cpu_share.h"
#include "agent/host/gpu_share.h"
#include "base/count_text.h"
#include "launcher/plan/plan_tasks.h"

namespace ddprun::launcher {
namespace {

using MaybeError = std::optional<Error>;
using slurm::Allocation;

std::optional<std::string> listed_devices(const std::optional<Allocation>& allocation,
                                          const HostFacts& host) {
    if (host.cuda_visible_devices || !allocation) return host.cuda_visible_devices;
    return allocation->visible_devices;
}

// A list of devices is exact. Without one all GPUs of the host are visible, unless the step holds
// fewer. A step may also hold GPUs that the host shows in no place we know.
int visible_gpus(const std::optional<Allocation>& allocation, const HostFacts& host) {
    const int shown = agent::count_devices(host.gpus, listed_devices(allocation, host));
    if (listed_devices(allocation, host)) return shown;
    if (!allocation || !allocation->gpus_on_node) return shown;
    int held = *allocation->gpus_on_node;
    return shown == 0 ? held : std::min(held, shown);
}

// Two ranks of NCCL cannot share a GPU. Where Slurm has dealt whole GPUs, their number is certain,
// so too many workers is an error.
std::optional<Error> check_gpus(const Plan& plan, const Allocation& allocation, int gpus) {
    const bool dealt = allocation.gpus_on_node || allocation.gpus_per_task;
    if (!dealt || gpus == 0 || plan.slots <= gpus) return std::nullopt;
    const std::string count = std::to_string(plan.slots);
    return usage_error("--nproc-per-node=" + count + ": Slurm gave " + std::to_string(gpus) +
                       (gpus == 1 ? " GPU" : " GPUs") + " to this task on " + plan.node_name +
                       "; use --gpus-per-node=" + count +
                       (allocation.gpus_per_task ? " rather than --gpus-per-task" : "") +
                       " (if workers need no GPU: srun env CUDA_VISIBLE_DEVICES= ddprun …)");
}

// Names the source that visible_gpus() has used, so that the user knows what to correct.
std::string gpu_reason(const std::optional<Allocation>& allocation, const HostFacts& host) {
    if (const auto list = listed_devices(allocation, host))
        return "one for each GPU of CUDA_VISIBLE_DEVICES=" + *list;
    const int shown = agent::count_devices(host.gpus, std::nullopt);
    if (visible_gpus(allocation, host) != shown)
        return "one for each GPU of SLURM_GPUS_ON_NODE=" +
               std::to_string(*allocation->gpus_on_node);
    return "one for each of the " + std::to_string(shown) + " GPUs that the driver shows";
}

// The reason for the number of workers, for the log and the dry run.
void give_reason(Plan& plan, const Options& options, const std::optional<Allocation>& allocation,
                 const HostFacts& host) {
    using Kind = WorkersPerNode::Kind;
    const bool count = options.nproc_per_node && options.nproc_per_node->kind == Kind::count;
    const bool cpu = options.nproc_per_node && options.nproc_per_node->kind == Kind::cpu;
    // Where the number was counted, another node may count another one.
    plan.slots_counted =
        !count && !options.task_per_worker && (options.nproc_per_node || !host.called_as_torchrun);
    if (options.task_per_worker)
        plan.slots_reason = "--task-per-worker";
    else if (count)
        plan.slots_reason = "--nproc-per-node=" + std::to_string(plan.slots);
    else if (!plan.slots_counted)
        plan.slots_reason = "torchrun's default";
    else if (!cpu && visible_gpus(allocation, host) > 0)
        plan.slots_reason = gpu_reason(allocation, host);
    else if (options.nproc_per_node)
        plan.slots_reason =
            "one for each of the " + std::to_string(plan.slots) + " CPUs that ddprun may use";
    else
        plan.slots_reason = "no GPU found";
}

// A cluster that does not manage its GPUs looks the same as a step that asked for none on one that
// does.
bool gpus_not_from_slurm(const std::optional<Allocation>& allocation, const HostFacts& host) {
    return allocation && !allocation->gpus_on_node && !allocation->visible_devices &&
           !host.cuda_visible_devices && !host.gpus.empty();
}

// What there is to compute with: a container may be allowed less time than it sees CPUs.
int usable_cpus(const HostFacts& host) {
    // Rounded up: a quota of 1.5 CPUs is one full CPU and a half, and rounding down leaves it idle.
    const int cpus = std::max(host.cpus, 1);
    return host.cpu_quota ? std::clamp(static_cast<int>(std::ceil(*host.cpu_quota)), 1, cpus)
                          : cpus;
}

void plan_threads(Plan& plan, const std::optional<Allocation>& allocation, const HostFacts& host) {
    // The user's own number is kept.
    if (host.omp_num_threads_set) return;
    if (host.called_as_torchrun) {
        // torchrun leaves the variable alone if there is only one worker.
        if (plan.slots == 1) return;
        plan.workers.omp_num_threads = 1;
        plan.warnings.push_back(
            "OMP_NUM_THREADS=1 for each worker, as with torchrun; set it to change the number");
        return;
    }
    const int cpus =
        plan.task ? cpus_of_task(plan, *allocation, usable_cpus(host)) : usable_cpus(host);
    plan.workers.omp_num_threads = std::max(1, cpus / plan.slots);
    if (!plan.workers.cpus.empty()) {
        // Bound workers may have different numbers of CPUs, so each gets its own number. A quota
        // may allow less than the binding.
        plan.workers.more.resize(plan.workers.cpus.size());
        for (std::size_t i = 0; i < plan.workers.cpus.size(); ++i)
            plan.workers.more[i]["OMP_NUM_THREADS"] =
                std::to_string(std::min(static_cast<int>(plan.workers.cpus[i].size()), cpus));
        plan.notes.push_back(
            "OMP_NUM_THREADS is the number of CPUs that each worker is bound to; set it to change "
            "the number");
        return;
    }
    plan.notes.push_back("OMP_NUM_THREADS=" + std::to_string(*plan.workers.omp_num_threads) +
                         " for each worker (" + count_text(cpus, "CPU") + ", " +
                         count_text(plan.slots, "worker") + "); set it to change the number");
}

// Binds workers to CPUs. The shares are among all tasks of the host if Slurm has not bound them,
// else within the CPUs of this task.
std::optional<Error> bind_cpus(Plan& plan, agent::CpuBinding binding,
                               const std::optional<Allocation>& allocation, const HostFacts& host) {
    const bool shared = plan.task && shares_cpus(plan, *allocation, host.cpus);
    auto nodes = agent::device_nodes(host.gpus, listed_devices(allocation, host));
    // GPUs of other tasks are not visible.
    if (plan.task && plan.task->own_gpus && shared) nodes.clear();
    if (plan.task && !plan.task->own_gpus && !shared) nodes = own_part(plan, std::move(nodes));
    auto shares = agent::share_cpus(binding, host.cpu_list, std::move(nodes),
                                    shared ? plan.task->tasks_here : plan.slots);
    // The sentence about the CPUs does not name the option.
    if (!shares) return usage_error("--numa-binding: " + shares.error().sentence());
    plan.workers.cpus = own_part(plan, std::move(*shares));
    return std::nullopt;
}

// torchrun starts every program with Python unless --no-python is given. ddprun decides by the
// name, so a C++ worker needs no option.
bool runs_by_python(const Options& options, const HostFacts& host) {
    if (options.no_python) return options.run_path;  // as in torchrun, --run-path beats --no-python
    return options.module || options.run_path || options.python || host.called_as_torchrun ||
           options.program.ends_with(".py");
}

}  // namespace

std::optional<Error> plan_slots(Plan& plan, const Options& options,
                                const std::optional<Allocation>& allocation,
                                const HostFacts& host) {
    using Kind = WorkersPerNode::Kind;
    int gpus = visible_gpus(allocation, host), cpus = std::max(host.cpus, 1);
    if (options.task_per_worker) {
        if (options.nproc_per_node &&
            (options.nproc_per_node->kind != Kind::count || options.nproc_per_node->count != 1))
            return usage_error(
                "--task-per-worker with --nproc-per-node: each task has one worker; leave one of "
                "them out");
        // However many GPUs the task sees: Slurm has started one task for each worker.
        plan.slots = 1;
        give_reason(plan, options, allocation, host);
        return plan_task_gpus(plan, *allocation, gpus);
    }
    if (!options.nproc_per_node) {
        plan.slots = host.called_as_torchrun || gpus == 0 ? 1 : gpus;
        if (!host.called_as_torchrun)
            plan.notes.push_back(
                gpus == 0 ? "no GPU found: one worker on this node; --nproc-per-node changes this"
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
                    return usage_error(
                        "--nproc-per-node=gpu: no GPU is visible on " + plan.node_name +
                        (allocation ? "; ask Slurm for --gpus-per-node"
                                    : "; see nvidia-smi -L and CUDA_VISIBLE_DEVICES") +
                        ", or give a count or cpu");
                plan.slots = gpus;
                break;
        }
    }
    give_reason(plan, options, allocation, host);
    // Only a number that the user gave is checked: gpu and auto count the GPUs themselves, and with
    // cpu the workers may need none.
    const bool counted = options.nproc_per_node && options.nproc_per_node->kind == Kind::count;
    if (counted && allocation)
        if (auto error = check_gpus(plan, *allocation, gpus)) return error;
    // A user who gave a number knows what the workers use. One who gave none may not expect GPUs
    // that Slurm did not deal out: another job may use them.
    bool by_gpus = plan.slots == gpus && !counted;
    if (by_gpus && gpus_not_from_slurm(allocation, host))
        plan.host_warnings.push_back(
            "Slurm gave this step no GPU, but " + plan.node_name + " shows " +
            std::to_string(gpus) +
            ", and the workers use them; ask Slurm for --gpus-per-node, or give --nproc-per-node");
    // A warning only: workers that are counted by CPUs may need no GPU, and where Slurm dealt none
    // out, sharing one may be intended.
    if (gpus > 0 && plan.slots > gpus)
        plan.host_warnings.push_back(std::to_string(plan.slots) + " workers, but " +
                                     std::to_string(gpus) + (gpus == 1 ? " GPU is" : " GPUs are") +
                                     " visible on " + plan.node_name +
                                     "; some workers will share a GPU");
    return std::nullopt;
}

std::optional<Error> plan_shares(Plan& plan, const Options& options,
                                 const std::optional<Allocation>& allocation,
                                 const HostFacts& host) {
    const auto list = listed_devices(allocation, host);
    const bool divided =
        !list && std::ranges::any_of(host.gpus, [](const auto& gpu) { return !gpu.mig.empty(); });
    // The number of workers that share the GPUs of this host. A task with its own GPU sees only
    // that one.
    const bool own = plan.task && plan.task->own_gpus;
    const int sharing = plan.task && !own ? plan.task->tasks_here : plan.slots;
    if (options.numa_binding)
        if (auto error = bind_cpus(plan, *options.numa_binding, allocation, host)) return error;
    if (options.virtual_local_rank) {
        auto dealt = agent::deal_devices(host.gpus, list, host.hip_visible_devices, sharing);
        if (!dealt) return dealt.error();
        plan.workers.more = own_part(plan, std::move(*dealt));
    } else if (own) {
        // The only device that the worker sees is number 0, and programs use cuda:LOCAL_RANK.
        plan.workers.more = {{{"LOCAL_RANK", "0"}}};
    } else if (divided && sharing > 1) {
        plan.host_warnings.push_back("the GPUs of " + plan.node_name +
                                     " are divided (MIG), and a process sees one instance at most; "
                                     "give --virtual-local-rank, so that each worker has its own");
    }
    plan_threads(plan, allocation, host);
    return std::nullopt;
}

void plan_command(Plan& plan, const Options& options, const HostFacts& host) {
    std::vector<std::string>& argv = plan.workers.argv;
    plan.program = {runs_by_python(options, host), options.program};
    using agent::warm::Mode;
    // A process that has called MPI_Init cannot be forked, and importing mpi4py calls it. And where
    // no second generation can come, no worker would be forked from the server.
    const bool one_generation = plan.standalone && plan.limits.max_restarts == 0;
    const bool off = host.called_as_torchrun || options.pmi || one_generation;
    plan.warm = options.warm.value_or(off ? Mode::off : Mode::automatic);
    plan.workers.framework_stop = options.framework_stop && !host.called_as_torchrun;
    if (options.set_aside_torn) plan.workers.set_aside_torn = host.working_directory;
    plan.workers.pmi = options.pmi;
    plan.limits.pmi = options.pmi;
    plan.recorders = {options.flight_recorder, !host.called_as_torchrun, !host.called_as_torchrun};
    if (plan.program.python) {
        // -u as in torchrun: Python would hold back its output while stdout is a pipe.
        argv = {options.python.value_or(host.python_exec.value_or(kPython)), "-u"};
        if (options.module) argv.push_back("-m");
        const bool of_path = argv.front() == kPython && !host.python_in_path.empty();
        plan.notes.push_back("the interpreter of the workers is " + argv.front() +
                             (of_path ? ", found in PATH as " + host.python_in_path : ""));
    }
    argv.push_back(options.program);
    plan.workers.first_argument = argv.size();
    plan.workers.collapse_dollars = host.called_as_torchrun;
    plan.workers.fault_handler = !host.called_as_torchrun;
    argv.insert(argv.end(), options.arguments.begin(), options.arguments.end());
}

}  // namespace ddprun::launcher
