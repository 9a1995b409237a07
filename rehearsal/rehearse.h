// --rehearse: this process becomes the Python program that plays a rehearsal (program/main.py).
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace ddprun::rehearsal {

// `order` is that of launcher/options/rehearsal_order.h. Returns only on an error: unavailable
// (Python cannot be started), internal.
Error rehearse(const std::string& python, const std::vector<std::string>& order);

}  // namespace ddprun::rehearsal
