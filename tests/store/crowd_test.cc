// Ten thousand workers wait for one key on a real store, and one SET frees all of them. This is
// what a job of that size does when NCCL distributes its id.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "store/client/client.h"
#include "tests/store/loopback.h"

namespace ddprun::store {
namespace {

using test::kLong;
using test::Loopback;
using test::Raw;
using testing::IsEmpty;

constexpr int kCrowd = 10'000;

// The workers are one other process, so each process needs 10,000 descriptors and not 20,000. When
// all connections wait, a byte goes to `ready`. Exits with 0 when every wait has ended, with 1 if a
// connection failed, with 2 if a wait ended wrongly.
[[noreturn]] void be_the_crowd(std::uint16_t port, int ready) {
    // The server handles the requests of a connection in order. The answer to PING therefore shows
    // that the WAIT before it is registered.
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

// Raises the limit of this process. False: the system does not allow it.
bool descriptors_for(int count) {
    // The store takes three quarters of them at most.
    const rlim_t want = static_cast<rlim_t>(count) / 3 * 4 + 200;
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur >= want) return true;
    limit.rlim_cur = want;
    // Only root may raise the hard limit. Otherwise setrlimit() fails.
    if (limit.rlim_max < want) limit.rlim_max = want;
    return ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

// All connections must be accepted, none may be closed or logged, and another client must get its
// answers meanwhile.
TEST(StoreCrowd, TenThousandWaitForOneKey) {
    if (!descriptors_for(kCrowd)) GTEST_SKIP() << "fewer than 13,532 descriptors, see ulimit -Hn";
    // Listens before the fork, so the crowd can connect before the store accepts.
    const test::Listening at = test::listen_v4();
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    // Before the store's thread exists: a fork() copies only the calling thread.
    const pid_t crowd = ::fork();
    if (crowd == 0) {
        ::close(at.fd);
        be_the_crowd(at.port, ready[1]);
    }
    // If the crowd dies, the read below now ends instead of waiting for ever.
    ::close(ready[1]);
    Loopback loopback({}, at);
    char byte = 0;
    const bool all_wait = ::read(ready[0], &byte, 1) == 1;
    EXPECT_TRUE(all_wait);
    if (all_wait) {
        StoreClient setter = std::move(StoreClient::connect("127.0.0.1", at.port, kLong).value());
        EXPECT_TRUE(setter.set("id", "x", kLong));
        // The SET has no answer. This call shows that the store still serves while it frees 10,000
        // waits.
        EXPECT_EQ(setter.num_keys(kLong).value(), 1);
    }
    int status = -1;
    ::waitpid(crowd, &status, 0);
    ::close(ready[0]);
    EXPECT_EQ(status, 0);
    EXPECT_THAT(loopback.lines(), IsEmpty());
    // The crowd and the client that set the key.
    EXPECT_EQ(loopback.store->contacts(), kCrowd + 1u);
}

}  // namespace
}  // namespace ddprun::store
