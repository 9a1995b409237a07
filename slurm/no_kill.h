// Whether srun's words ask that a lost node ends neither the step nor its tasks (`srun --no-kill`).
// Nothing else tells a step: Slurm hands the option to none of its variables and shows it in none of
// its commands' answers, of the job (`sbatch --no-kill`) not even here. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace ddprun::slurm {

// The words of srun before the command that it starts, its own name left out; and SLURM_NO_KILL as
// srun saw it. Both are needed, for the last word of the command line wins.
bool asks_no_kill(const std::vector<std::string>& words,
                  const std::optional<std::string>& variable);

// Which of srun's words are its own: those before `command`, with which they must end. The first
// word of both (a program's name) may have another folder in front. Empty where this srun starts
// something else; else srun's name comes first.
std::vector<std::string> words_of_srun(const std::vector<std::string>& srun,
                                       const std::vector<std::string>& command);

}  // namespace ddprun::slurm
