// The first meeting of a group: all ranks come to a place in the group's store, before the backend
// connects. Backends do not name the rank that is missing; this does.
#pragma once

#include <chrono>
#include <string>

#include "base/error.h"
#include "trainer/worker/context.h"
#include "trainer/worker/store.h"

namespace ddprun::trainer {

// Waits until all ranks of the group have come. `place`: a key of this meeting alone. `timeout` is
// what the message tells of; `deadline` ends the wait. Errors: timed_out, with the rank that did
// not come; those of the store.
Result<void> meet_all(const Context& context, Store& store, const std::string& place,
                      std::chrono::steady_clock::time_point deadline,
                      std::chrono::milliseconds timeout);

}  // namespace ddprun::trainer
