// A line for the log as a machine asks for it: machines do not log, they return Notes.
#pragma once

#include <string>

namespace ddprun {

struct Note {
    enum class Level { debug, info, warn, error };  // warn only where an operator should act
    Level level = Level::info;
    std::string sentence;
    bool operator==(const Note&) const = default;
};

}  // namespace ddprun
