// For the end of a node: operators who read what its workers print (`ddpctl logs`) get the end of
// it. Their text passes the loop, which has ended by then.
//
// Thread: the loop's. Blocks its caller.
#pragma once

#include <boost/asio/io_context.hpp>

#include "rendezvous/service/service.h"

namespace ddprun::rendezvous {

// Runs the loop until they have had all and left, half a second at most: who does not read is not
// waited for. Without such operators it returns at once.
void let_visitors_leave(boost::asio::io_context& loop, const Service& service);

}  // namespace ddprun::rendezvous
