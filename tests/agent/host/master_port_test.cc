// The port that a node offers for the workers' store, with real sockets on this host.
#include "agent/host/master_port.h"

#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <boost/asio/ip/tcp.hpp>
#include <fstream>
#include <thread>

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

// Whether somebody who is told this address reaches the port.
bool answers(const char* address, std::uint16_t port) {
    const auto where = boost::asio::ip::make_address(address);
    const boost::asio::ip::tcp::endpoint at(where, port);
    const UniqueFd fd(::socket(at.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    return ::connect(fd.get(), at.data(), static_cast<socklen_t>(at.size())) == 0;
}

// A port that only looked free could be taken by another process before the workers start. So the
// port and the next two are held from the offer on. At the start the two neighbours are released,
// because some programs use MASTER_PORT+1 and +2. The port itself stays bound: it goes to the
// store.
TEST(MasterPort, HoldsThePortAndItsNeighbours) {
    for (bool loopback : {true, false}) {
        for (const char* told : {"127.0.0.1", "gpu01"}) {
            MasterPort ports(loopback);
            const int port = ports.offer(told, {"127.0.0.1"}).value();
            for (int i : {0, 1, 2}) EXPECT_FALSE(can_bind(port + i)) << i;
            // A Join is repeated, and each one offers a port. All of them must offer the same.
            EXPECT_EQ(ports.offer(told, {"127.0.0.1"}).value(), port);
            const auto listeners = ports.take(static_cast<std::uint16_t>(port));
            EXPECT_FALSE(listeners.empty());
            EXPECT_FALSE(can_bind(port));
            for (int i : {1, 2}) EXPECT_TRUE(can_bind(port + i)) << i;
        }
    }
}

// A network of this thread's own, with loopback, whose clients get nearly all ports.
bool enter_network_of_clients() {
    if (::unshare(CLONE_NEWNET) != 0) return false;
    const UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq loopback{"lo", {}};
    loopback.ifr_flags = IFF_UP;
    std::ofstream("/proc/sys/net/ipv4/ip_local_port_range") << "1024 65000" << std::flush;
    return ::ioctl(fd.get(), SIOCSIFFLAGS, &loopback) == 0;
}

TEST(MasterPort, HoldsTheNeighboursWhereClientsMayHaveNearlyAllPorts) {
    std::thread([] {
        if (!enter_network_of_clients()) return;  // not as root
        MasterPort ports(false);
        const int port = ports.offer("gpu01", {}).value();
        for (int i : {0, 1, 2}) EXPECT_FALSE(can_bind(port + i)) << i;
    }).join();
}

// A new port for each generation: a worker of an old generation must not reach the new store.
TEST(MasterPort, IsFreshOnceTaken) {
    MasterPort ports(true);
    const auto first = ports.offer("127.0.0.1", {}).value();
    const auto listeners = ports.take(first);
    EXPECT_NE(ports.offer("127.0.0.1", {}).value(), first);
    // A late message about the old generation hands out nothing.
    EXPECT_TRUE(ports.take(first).empty());
}

// 127.0.0.9 plays the address that workers are told, 127.0.0.8 another interface of this host.
TEST(MasterPort, ListensWhereWorkersAreToldAndOnLoopback) {
    MasterPort ports(false);
    const auto port = ports.offer("127.0.0.9", {"127.0.0.1", "127.0.0.9"}).value();
    EXPECT_TRUE(answers("127.0.0.9", port));
    EXPECT_TRUE(answers("127.0.0.1", port));
    EXPECT_FALSE(answers("127.0.0.8", port));
    EXPECT_EQ(ports.where(), "127.0.0.9 and loopback");
    // The leader is reached from another interface now: there is a port there.
    const auto other = ports.offer("127.0.0.8", {"127.0.0.1", "127.0.0.8"}).value();
    EXPECT_TRUE(answers("127.0.0.8", other));
    EXPECT_FALSE(answers("127.0.0.9", other));
}

// The leader has assigned the first offer before it got the second one.
TEST(MasterPort, AnOfferStaysWhenAnotherOneFollows) {
    const std::vector<std::string> local = {"127.0.0.8", "127.0.0.9"};
    MasterPort ports(false);
    const auto first = ports.offer("127.0.0.9", local).value();
    const auto second = ports.offer("127.0.0.8", local).value();
    EXPECT_NE(first, second);
    EXPECT_EQ(ports.offer("127.0.0.9", local).value(), first);
    EXPECT_EQ(ports.offer("127.0.0.8", local).value(), second);
    EXPECT_FALSE(ports.take(first).empty());
    EXPECT_EQ(ports.where(), "127.0.0.9 and loopback");
    // The other one is of no use to a later generation.
    EXPECT_TRUE(ports.take(second).empty());
    EXPECT_FALSE(answers("127.0.0.8", second));
}

// What other hosts make of it is not known here, so all that works today still works.
TEST(MasterPort, ListensOnAllAddressesForANameAndForAnAddressOfSomebodyElse) {
    for (const char* told : {"gpu01", "", "192.0.2.7", "fe80::1%eth9"}) {
        MasterPort ports(false);
        const auto port = ports.offer(told, {"127.0.0.1", "fe80::1"}).value();
        EXPECT_TRUE(answers("127.0.0.1", port)) << told;
        EXPECT_TRUE(answers("127.0.0.8", port)) << told;
        EXPECT_TRUE(ports.where().starts_with("all addresses, since")) << ports.where();
    }
    // It was ours when the host was looked at, and has gone.
    MasterPort ports(false);
    const auto port = ports.offer("192.0.2.7", {"192.0.2.7"}).value();
    EXPECT_TRUE(answers("127.0.0.8", port));
    EXPECT_EQ(ports.where(), "all addresses, since 192.0.2.7 cannot be bound");
}

}  // namespace
}  // namespace ddprun::agent
