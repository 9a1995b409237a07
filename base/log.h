// The type of the function that receives log lines. Modules with I/O pass it the same Notes that
// the state machines return, and the owner of the log prints them. Called on the loop's thread
// only.
#pragma once

#include <functional>

#include "base/note.h"

namespace ddprun {

using Log = std::function<void(const Note&)>;

}  // namespace ddprun
