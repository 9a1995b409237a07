// Whether anybody of Slurm's still has a job in hand: its batch script, as `scontrol show job` and
// `squeue -s` tell. Pure.
#pragma once

#include <string_view>

namespace ddprun::slurm {

enum class BatchScript {
    // Slurm has taken its host out of the running job: it runs no more, and will not, though the
    // host should come back. Nobody ends the job before its time limit.
    lost,
    // Its host is one of the job's, as far as Slurm knows.
    there,
    // The job has none, or runs no more; or the text is not understood.
    none,
};

// `shown`: of `scontrol show job ID`; of a heterogeneous job the first part counts, which has the
// script.
BatchScript batch_script(std::string_view shown);

// `steps`: of `squeue -s -h -o %i -j ID`, "1003.0" a line; those of Slurm's own, "1003.batch", are no
// others. Slurm goes on naming one that had a lost node when it has ended.
bool is_only_step(std::string_view steps, std::string_view own);

}  // namespace ddprun::slurm
