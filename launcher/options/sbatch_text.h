// A batch script of slurm/*.sbatch, filled in with the options and the program of a command line.
// Pure.
#pragma once

#include <string>

#include "launcher/options/options.h"

namespace ddprun::launcher {

// The script that `options.print_sbatch` names. Numbers of nodes and GPUs go to sbatch; options
// that say what Slurm knows are left out, with a comment. Without a program the script keeps its
// example. Modules and the virtual or conda environment that are active in `environment` are
// activated by the script.
std::string sbatch_text(const Options& options, const Environment& environment);

}  // namespace ddprun::launcher
