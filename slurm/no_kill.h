// Finds out from srun's command line whether a lost node ends the step (`srun --no-kill`: it does
// not). Pure.
//
// The command line is the only source. Slurm puts the option into no variable of the tasks and
// shows it in the output of no command. Whether sbatch had the option cannot be found out at all.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace ddprun::slurm {

// `words` are the words of srun before the command that it starts, without the name "srun".
// `variable` is SLURM_NO_KILL in srun's environment. Both are needed, because the last word of the
// command line wins over the variable.
bool asks_no_kill(const std::vector<std::string>& words,
                  const std::optional<std::string>& variable);

// Returns the words of srun, its name first, that come before `command`. srun's words must end with
// those of `command`; the first word of both (the program) may have different folders. Returns
// nothing when this srun starts something else.
std::vector<std::string> words_of_srun(const std::vector<std::string>& srun,
                                       const std::vector<std::string>& command);

}  // namespace ddprun::slurm
