// The parts of --help and of the manual page that are not about options: exit codes, files,
// variables, signals, examples. A plain constant.
#pragma once

#include <span>
#include <string_view>

namespace ddprun::launcher {

struct ManualRow {
    std::string_view term, what;
};

struct ManualSection {
    std::string_view title;    // in --help
    std::string_view heading;  // in the manual page
    bool in_short_help = true;
    std::span<const ManualRow> rows;
};

std::span<const ManualSection> manual_sections();

}  // namespace ddprun::launcher
