// What a client (client.h) reports about its connection to a rendezvous. All of it comes on the
// loop.
#pragma once

#include <functional>
#include <string>

#include "base/error.h"
#include "rendezvous/model/messages.h"

namespace ddprun::rendezvous {

struct ClientCallbacks {
    // The rendezvous has answered. `local_address` is the address from which we reached it, the one
    // to offer to other nodes. The answer itself follows as the first on_message.
    std::function<void(const std::string& local_address)> on_up;
    std::function<void(const ToNode&)> on_message;
    // The link is idle again. closed: an established connection ended. unavailable: the only
    // attempt failed. timed_out: nobody answered before the deadline. malformed: what came was not
    // our protocol. The sentence names the peer and says what the last attempts met.
    std::function<void(const Error&)> on_lost;
};

}  // namespace ddprun::rendezvous
