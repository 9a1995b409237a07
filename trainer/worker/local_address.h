// The address at which other nodes can reach this one.
#pragma once

#include <string>

#include "base/error.h"
#include "trainer/worker/context.h"

namespace ddprun::trainer {

// A numeric address: the one from which this node reaches MASTER_ADDR. Sends nothing.
//
// If all ranks are on one node, this is usually a loopback address. On several nodes a loopback
// address would be useless. It appears if /etc/hosts maps the host's name to 127.0.1.1, and is then
// replaced by the address of the first interface that is up.
//
// Errors: unavailable, if MASTER_ADDR cannot be resolved or no route leads there.
Result<std::string> local_address(const Context& context);

}  // namespace ddprun::trainer
