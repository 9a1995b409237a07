// Where programs are looked for if PATH is not set, as execvp() does. Pure.
#pragma once

namespace ddprun {

inline constexpr const char* kDefaultPath = "/usr/local/bin:/usr/bin:/bin";

}  // namespace ddprun
