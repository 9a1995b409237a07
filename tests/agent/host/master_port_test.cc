// The port that a node offers for the workers' store, with real sockets on this host.
#include "agent/host/master_port.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace ddprun::agent {
namespace {

// Whether a program could use the port now. It tries loopback, which also conflicts with a socket
// that is bound to all addresses.
bool can_bind(int port) {
    const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    return ::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

// A port that only looked free could be taken by another process before the workers start. So the
// port and the next two are held from the offer on. At the start the two neighbours are released,
// because some programs use MASTER_PORT+1 and +2. The port itself stays bound: it goes to the
// store.
TEST(MasterPort, HoldsThePortAndItsNeighbours) {
    for (bool loopback : {true, false}) {
        MasterPort ports(loopback);
        const int port = ports.offer().value();
        for (int i : {0, 1, 2}) EXPECT_FALSE(can_bind(port + i)) << i;
        // A Join is repeated, and each one offers a port. All of them must offer the same.
        EXPECT_EQ(ports.offer().value(), port);
        const UniqueFd listener = ports.take(static_cast<std::uint16_t>(port));
        EXPECT_TRUE(listener);
        EXPECT_FALSE(can_bind(port));
        for (int i : {1, 2}) EXPECT_TRUE(can_bind(port + i)) << i;
    }
}

// A new port for each generation: a worker of an old generation must not reach the new store.
TEST(MasterPort, IsFreshOnceTaken) {
    MasterPort ports(true);
    const auto first = ports.offer().value();
    const UniqueFd listener = ports.take(first);
    EXPECT_NE(ports.offer().value(), first);
    // A late message about the old generation hands out nothing.
    EXPECT_FALSE(ports.take(first));
}

}  // namespace
}  // namespace ddprun::agent
