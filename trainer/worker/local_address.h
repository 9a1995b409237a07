// The address at which the other nodes reach this one: the one from which this node reaches the
// master.
#pragma once

#include <string>

#include "base/error.h"
#include "trainer/worker/context.h"

namespace ddprun::trainer {

// A numeric address. All ranks on one node: that of the way to the master, usually loopback. On
// several nodes a loopback address (a host name that /etc/hosts maps to 127.0.1.1) is replaced by
// the first interface's. Sends nothing. Errors: unavailable, when MASTER_ADDR cannot be resolved or
// no route leads to it.
Result<std::string> local_address(const Context& context);

}  // namespace ddprun::trainer
