// One log line as a value. State machines do not log; they return Notes, and their caller prints
// them.
#pragma once

#include <string>

namespace ddprun {

struct Note {
    // `warn` is only for what an operator should act on.
    enum class Level { debug, info, warn, error };
    Level level = Level::info;
    std::string sentence;
    bool operator==(const Note&) const = default;
};

}  // namespace ddprun
