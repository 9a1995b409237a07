// What a check has found out about warm starts (warm_check.h). Pure.
#pragma once

#include <string>

namespace ddprun::agent::warm {

struct WarmCheck {
    std::string cold;  // why all starts would be cold; empty: they would not
    int modules = 0;
    // What a cold worker does for them: files that it reads, and calls that only look for files.
    int files = 0, looks = 0;
    bool operator==(const WarmCheck&) const = default;
};

}  // namespace ddprun::agent::warm
