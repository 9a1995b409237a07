// The port of RAS, shared as NCCL shares it.
#include "diagnosis/nccl/ras_port.h"

#include <gmock/gmock.h>

#include "base/system/boot_clock.h"
#include "diagnosis/nccl/ras_address.h"
#include "diagnosis/nccl/ras_client.h"

namespace ddprun::agent {
namespace {

using testing::IsEmpty;
using Variables = RasPort::Variables;

// As NCCL binds it: rasClientInitSocket().
UniqueFd bound_as_nccl(const std::string& address, bool shares = true) {
    const auto at = RasAddress::parse(address);
    EXPECT_TRUE(at) << address;
    UniqueFd socket(::socket(at->family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (shares) ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    if (::bind(socket.get(), at->data(), at->size()) != 0 || ::listen(socket.get(), 8) != 0)
        socket.reset();
    return socket;
}

TEST(RasPort, EachJobHasItsOwn) {
    RasPort one(true, {}), two(true, {});
    Variables first, second;
    one.begin(first);
    two.begin(second);
    EXPECT_EQ(first["NCCL_RAS_ADDR"], one.address());
    EXPECT_NE(one.address(), two.address());
    EXPECT_TRUE(one.is_ours());
    const std::string before = one.address();
    one.begin(first);
    EXPECT_EQ(one.address(), before) << "the next generation has the same one";
}

TEST(RasPort, AllProcessesOfTheJobListenOnIt) {
    RasPort port(true, {});
    Variables environment;
    port.begin(environment);
    EXPECT_EQ(ask_ras(port.address(), std::chrono::seconds{1}).error().code(),
              ErrorCode::unavailable)
        << "nobody listens yet";
    EXPECT_TRUE(bound_as_nccl(port.address()));
    const UniqueFd first = bound_as_nccl(port.address()), second = bound_as_nccl(port.address());
    EXPECT_TRUE(first && second);
    EXPECT_FALSE(bound_as_nccl(port.address(), false)) << "a program that does not share it";
}

TEST(RasPort, WhatTheUserHasSetStays) {
    RasPort port(true, {{"NCCL_RAS_ADDR", "10.0.0.7:999"}});
    Variables environment;
    port.begin(environment);
    EXPECT_THAT(environment, IsEmpty());
    EXPECT_EQ(port.address(), "10.0.0.7:999");
    EXPECT_FALSE(port.is_ours());
}

TEST(RasPort, ByTheNameTorchrunNothingIsSet) {
    RasPort port(false, {});
    Variables environment;
    port.begin(environment);
    EXPECT_THAT(environment, IsEmpty());
    EXPECT_EQ(port.address(), "127.0.0.1:28028");
}

}  // namespace
}  // namespace ddprun::agent
