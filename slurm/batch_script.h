// Finds out from `scontrol show job` and `squeue -s` whether a job has lost the host of its batch
// script. Pure.
//
// If so, nobody ends the job when its last step ends, and its nodes stay allocated until the time
// limit. slurm/README.md, "Without a batch host", says what ddprun does then.
#pragma once

#include <optional>
#include <string_view>

namespace ddprun::slurm {

enum class BatchScript {
    // Slurm has removed the host of the batch script from the running job. The script cannot
    // continue, even if the host comes back.
    lost,
    // The host of the script is one of the job's nodes, as far as Slurm knows.
    there,
    // The job has no batch script, or does not run, or the text cannot be understood.
    none,
};

// `shown` is the output of `scontrol show job ID`. Of a heterogeneous job the first part counts,
// because it has the script.
BatchScript batch_script(std::string_view shown);

// How often Slurm has requeued the job by now; nothing if the text does not say so. A ddprun of an
// earlier allocation must leave the job alone.
std::optional<int> restarts_of(std::string_view shown);

// Whether the job has no other step than `own`, for example "1003.0". `steps` is the output of
// `squeue -s -h -o %i -j ID`, one step in each line. Slurm's own steps, such as "1003.batch", do
// not count. If a step had a lost node, Slurm still lists it after its end, and it counts.
bool is_only_step(std::string_view steps, std::string_view own);

}  // namespace ddprun::slurm
