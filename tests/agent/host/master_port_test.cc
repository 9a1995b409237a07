#include "agent/host/master_port.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace ddprun::agent {
namespace {

bool can_bind(int port) {
    const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    return ::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

// Nobody else can have the port or its neighbours from the offer on; the neighbours are the
// programs' when the generation begins.
TEST(MasterPort, HoldsThePortAndItsNeighbours) {
    for (bool loopback : {true, false}) {
        MasterPort ports(loopback);
        const int port = ports.offer().value();
        for (int i : {0, 1, 2}) EXPECT_FALSE(can_bind(port + i)) << i;
        EXPECT_EQ(ports.offer().value(), port);
        const UniqueFd listener = ports.take(static_cast<std::uint16_t>(port));
        EXPECT_TRUE(listener);
        EXPECT_FALSE(can_bind(port));
        for (int i : {1, 2}) EXPECT_TRUE(can_bind(port + i)) << i;
    }
}

TEST(MasterPort, IsFreshOnceTaken) {
    MasterPort ports(true);
    const auto first = ports.offer().value();
    const UniqueFd listener = ports.take(first);
    EXPECT_NE(ports.offer().value(), first);
    EXPECT_FALSE(ports.take(first));
}

}  // namespace
}  // namespace ddprun::agent
