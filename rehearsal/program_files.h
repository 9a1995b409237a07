// The Python files of a rehearsal (program/), which are part of this program.
#pragma once

#include <span>
#include <string_view>

namespace ddprun::rehearsal {

struct ProgramFile {
    std::string_view name, text;  // of a module
};
std::span<const ProgramFile> program_files();

}  // namespace ddprun::rehearsal
