// The Python files of the fork server (bootstrap/), which are part of this program.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace ddprun::agent::warm {

struct BootstrapFile {
    std::string_view name, text;
};
std::span<const BootstrapFile> bootstrap_files();

// Where they are, in the temporary folder of a job.
std::string bootstrap_folder(const std::string& temporary);
// Writes them there. Blocks: use the file thread. Possible errors: unavailable; then none is there
// that Python would find.
Result<> write_bootstrap(const std::string& temporary);
// Whether they are there.
bool has_bootstrap(const std::string& temporary);

// Puts this folder first on PYTHONPATH, and adds these variables ("NAME=value"). The bootstrap
// takes both back.
void add_bootstrap(std::vector<std::string>& environment, const std::string& folder,
                   const std::vector<std::string>& variables);

}  // namespace ddprun::agent::warm
