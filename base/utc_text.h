// A time of day as text, in UTC: "2027-01-15T08:00:00.250Z".
#pragma once

#include <string>

#include "base/time.h"

namespace ddprun {

// Cut to milliseconds, not rounded, so that no event seems later than it was.
std::string utc_text(Duration since_1970);

}  // namespace ddprun
