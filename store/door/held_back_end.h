// A connection whose end does not arrive yet. A client may close its connection before it is known
// whose it is. As long as nobody has confirmed the end, the kernel of its host has the socket, and
// since Linux 6.17 its user; after that nothing remains of it.
//
// A filter of the socket drops each packet that ends the connection. The client's kernel sends it
// again, after 0.2 s at first. Connections that are accepted have the filter of the socket that
// listens. Both functions do nothing where the kernel has no filters. Thread: any.
#pragma once

namespace ddprun::store {

void hold_back_end(int socket);
void let_end(int socket);

}  // namespace ddprun::store
