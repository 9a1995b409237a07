// Answers a member's question whose connections to its workers' store are. Shell: it asks the
// kernel of this host. Thread: any.
#pragma once

#include "rendezvous/model/messages.h"
#include "store/door/socket_user.h"

namespace ddprun::rendezvous {

Owners owners_of(store::SocketUsers& users, const AskOwners& asked);

}  // namespace ddprun::rendezvous
