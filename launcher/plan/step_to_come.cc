// Plans a step that srun has not started yet (step_to_come.h).
#include "launcher/plan/step_to_come.h"

#include <algorithm>

#include "slurm/launch_shape.h"

namespace ddprun::launcher {
namespace {

using slurm::Allocation;

constexpr const char* kJob = "JOB";  // placeholder for the number of the job
constexpr const char* kStep = "STEP";

// With an endpoint ddprun starts without srun, so no step is to come.
bool names_endpoint(const Options& options) {
    return options.standalone || options.rdzv_endpoint || options.master_addr;
}

// The allocation of a job that is not submitted yet, with placeholder names.
Allocation of_no_job(int nodes) {
    Allocation allocation;
    allocation.job_id = kJob;
    // All names are placeholders, so more of them would tell nothing.
    for (int i = 0; i < std::min(nodes, kMostNodesShown); ++i)
        allocation.nodes.push_back("NODE" + std::to_string(i));
    return allocation;
}

// Slurm gives srun all nodes of the job by default. Variables about the batch script's own task and
// devices do not describe the step, so they are removed.
Result<Allocation> of_job(Environment environment) {
    for (const char* name :
         {"SLURM_NODEID", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_STEP_NODELIST",
          "SLURM_STEP_NUM_NODES", "SLURM_STEP_TASKS_PER_NODE", "SLURM_STEP_RESV_PORTS",
          "SLURM_STEPID", "CUDA_VISIBLE_DEVICES", "SLURM_GPUS_ON_NODE"})
        environment.erase(name);
    // As its first node will see the step. step_to_come() replaces the step's number by the
    // placeholder afterwards.
    environment["SLURM_STEP_ID"] = environment["SLURM_NODEID"] = "0";
    auto allocation = slurm::read_allocation(environment);
    if (!allocation) return allocation.error();
    return std::move(**allocation);
}

// Only a number that the user gave is certain. The devices and CPUs of the compute nodes are not
// those of this host.
void count_workers(StepToCome& step, const Options& options) {
    using Kind = WorkersPerNode::Kind;
    const auto& asked = options.nproc_per_node;
    step.workers_known = asked && asked->kind == Kind::count;
    if (step.workers_known) return;
    step.workers_note = !asked                     ? "one for each GPU of a node, else one"
                        : asked->kind == Kind::cpu ? "one for each CPU of a node"
                        : asked->kind == Kind::gpu ? "one for each GPU of a node"
                                                   : "one for each GPU of a node, else CPU";
    step.workers_note += "; counted at the start";
}

}  // namespace

slurm::ShapeAsked shape_asked(const Options& options) {
    return {.one_node = options.standalone || (options.nnodes && options.nnodes->max == 1),
            .meets = options.nnodes && options.nnodes->max > 1 && names_endpoint(options),
            .task_per_worker = options.task_per_worker};
}

Result<std::optional<StepToCome>> step_to_come(const Options& options,
                                               const Environment& environment) {
    StepToCome step;
    if (slurm::context_of(environment) == slurm::Context::none) {
        // A start here would not be refused: it is one node, or the options say where to meet.
        if (!options.nnodes || options.nnodes->max == 1 || names_endpoint(options))
            return std::optional<StepToCome>();
        step.allocation = of_no_job(options.nnodes->max);
        step.warning = "this is not a Slurm job; start it with srun, in a job of " +
                       std::to_string(options.nnodes->max) + " nodes";
    } else {
        const slurm::ShapeAsked asked = shape_asked(options);
        // A step is there already, or a start here would work: then nothing is to come.
        if (slurm::context_of(environment) == slurm::Context::step ||
            slurm::check_launch_shape(environment, std::nullopt, asked))
            return std::optional<StepToCome>();
        auto allocation = of_job(environment);
        if (!allocation) return allocation.error();
        step.allocation = std::move(*allocation);
        step.nodes_known = true;
        step.warning =
            "a start here would be refused: " +
            slurm::check_launch_shape(environment, std::nullopt, asked).error().sentence();
    }
    step.allocation.step_id = kStep;
    step.allocation.node_name = step.allocation.nodes.front();
    count_workers(step, options);
    return std::optional(std::move(step));
}

// Removes options whose result depends on the devices of a node.
Options without_host(Options options, const StepToCome& step) {
    if (!step.workers_known)
        // Any number does: the output says that it is not known.
        options.nproc_per_node = WorkersPerNode{WorkersPerNode::Kind::count, 1};
    options.virtual_local_rank = false;
    options.interface.reset();
    options.numa_binding.reset();
    return options;
}

HostFacts without_host(HostFacts host) {
    // The login node's devices and CPUs are not those of the compute nodes.
    host.gpus.clear();
    host.cuda_visible_devices.reset();
    host.hip_visible_devices.reset();
    host.omp_num_threads_set = true;  // the number of CPUs is not known
    return host;
}

}  // namespace ddprun::launcher
