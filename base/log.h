// Where the shells of the rendezvous send their lines: the same Note that the machines return,
// handed to whoever owns the log. Called on the loop's thread only.
#pragma once

#include <functional>

#include "base/note.h"

namespace ddprun {

using Log = std::function<void(const Note&)>;

}  // namespace ddprun
