// Asks NCCL's RAS in a job of this host.
//
//     CLIENT PROTOCOL 2    →  SERVER PROTOCOL 2
//     SET FORMAT json      →  OK, or before 2.28.7 an error: then it answers text
//     TIMEOUT 3            →  OK
//     VERBOSE STATUS       →  the answer, and the end
//
// All processes of a user that have the same address listen on it together, and the kernel gives
// the connection to one of them. So a process that is stopped may get it: one that does not answer
// the first line within a second is given up, and another connection is tried.
//
// Thread: one of its own; it blocks until `patience` is over at the latest.
#pragma once

#include <string>

#include "base/error.h"
#include "base/time.h"

namespace ddprun::agent {

enum class RasForm { any, text };

// The answer as NCCL has given it, without the lines before; maybe half of it. `address`: as in
// NCCL_RAS_ADDR, "127.0.0.1:28028" or "[::1]:28028"; localhost is 127.0.0.1. Errors:
// unavailable (nobody listens), timed_out, closed (without an answer), malformed (no such address,
// no RAS, or longer than 16 MiB).
Result<std::string> ask_ras(const std::string& address, Duration patience,
                            RasForm form = RasForm::any);

}  // namespace ddprun::agent
