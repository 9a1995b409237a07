// Ten thousand workers at once: all of them connected, all of them waiting for one key.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "rendezvous/store/client.h"
#include "tests/rendezvous/store/loopback.h"

namespace ddprun::store {
namespace {

using test::kLong;
using test::Loopback;
using test::Raw;
using testing::IsEmpty;

constexpr int kCrowd = 10'000;

// The workers live in a process of their own, as they do: 10,000 descriptors there, as many here.
// Each connection has asked and been answered, and waits; then a byte goes to `ready`. Exits with 0
// when every wait has ended.
[[noreturn]] void be_the_crowd(std::uint16_t port, int ready) {
    const std::string hello = encode({Operation::validate, {}, {}, 0}) +
                              encode({Operation::wait, {"/id"}, {}, 0}) +
                              encode({Operation::ping, {}, {}, 1});
    std::vector<std::unique_ptr<Raw>> crowd;
    for (int i = 0; i < kCrowd; ++i) {
        crowd.push_back(std::make_unique<Raw>(port));
        crowd.back()->send(hello);
        if (crowd.back()->receive(4).size() != 4) ::_exit(1);
    }
    if (::write(ready, "x", 1) != 1) ::_exit(1);
    for (const auto& worker : crowd) {
        if (worker->receive(1) != std::string(1, '\0')) ::_exit(2);
    }
    ::_exit(0);
}

// Raised for this program; false when the system does not let us.
bool descriptors_for(int count) {
    const rlim_t want = static_cast<rlim_t>(count) + 200;
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur >= want) return true;
    limit.rlim_cur = want;
    if (limit.rlim_max < want) limit.rlim_max = want;  // root may
    return ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

TEST(StoreCrowd, TenThousandWaitForOneKey) {
    if (!descriptors_for(kCrowd)) GTEST_SKIP() << "fewer than 10,200 descriptors, see ulimit -Hn";
    const test::Listening at = test::listen_v4();
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t crowd = ::fork();  // before there are threads
    if (crowd == 0) {
        ::close(at.fd);
        be_the_crowd(at.port, ready[1]);
    }
    ::close(ready[1]);
    Loopback loopback({}, at);
    char byte = 0;
    const bool all_wait = ::read(ready[0], &byte, 1) == 1;
    EXPECT_TRUE(all_wait);
    if (all_wait) {
        StoreClient setter = std::move(StoreClient::connect("127.0.0.1", at.port, kLong).value());
        EXPECT_TRUE(setter.set("id", "x", kLong));
        EXPECT_EQ(setter.num_keys(kLong).value(), 1);  // nobody held it up
    }
    int status = -1;
    ::waitpid(crowd, &status, 0);
    ::close(ready[0]);
    EXPECT_EQ(status, 0);
    EXPECT_THAT(loopback.lines(), IsEmpty());
    EXPECT_EQ(loopback.store->contacts(), kCrowd + 1u);
}

}  // namespace
}  // namespace ddprun::store
