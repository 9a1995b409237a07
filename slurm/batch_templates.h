// The batch scripts of this folder (*.sbatch), as they were at build time. Plain constants; the
// source is generated from the scripts (CMakeLists.txt).
#pragma once

#include <span>
#include <string_view>

namespace ddprun::slurm {

struct BatchTemplate {
    std::string_view name;  // "preemptible"
    std::string_view text;
};

std::span<const BatchTemplate> batch_templates();  // by name

}  // namespace ddprun::slurm
