// A configuration file: TOML whose keys are the names of options. In: the text. Out: options and
// values, each with its line, or one line that says what is wrong and where. Pure.
//
//     nproc-per-node = 4
//     identity = "require"
//     requeue-signal = ["USR1", "USR2"]    # as --requeue-signal=USR1,USR2
//     no-label = true                      # an option without a value; false: as if not given
#pragma once

#include <string>
#include <vector>

#include "launcher/options/option_table.h"

namespace ddprun::launcher {

struct ConfigFile {
    std::string path;  // for messages
    std::string text;
};

// One key of a file, as the command line would have it.
struct ConfigValue {
    const OptionRow* row = nullptr;
    std::string where;  // "/etc/ddprun/ddprun.toml:3"
    std::string key;    // as the file has it: "nproc_per_node"
    std::string value;  // of a flag: "1" or "0"
};

struct ConfigRead {
    std::vector<ConfigValue> values;
    // Keys that are no option (with the nearest name), or that only the command line can give.
    std::vector<std::string> unknown;
};

// Possible errors: usage: no TOML, a value of a type that no option has. Whether the option takes
// the value is checked where it is used.
Result<ConfigRead> read_config(const ConfigFile& file);

}  // namespace ddprun::launcher
