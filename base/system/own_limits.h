// Limits of our own process below which nothing works. Without this check the process would end in
// the middle of something, by a signal or an exception.
#pragma once

#include "base/error.h"

namespace ddprun {

// Call it first in main(). Possible errors: unavailable (names the limit and what is needed).
Result<> check_own_limits();

}  // namespace ddprun
