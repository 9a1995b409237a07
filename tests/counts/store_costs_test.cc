// What the workers' store costs, in counts that no machine changes: allocations and system calls of
// its thread for each request, and memory for each idle connection. A real store is asked over real
// sockets.
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "tests/store/loopback.h"
#include "tests/support/limits.h"

namespace {

// Only the store's thread is counted: the test's own thread allocates for its sake.
thread_local bool test_thread = false;
std::atomic<long> allocations{0};
std::atomic<long> system_calls{0};

template <typename... Arguments>
long counted(long number, Arguments... arguments) {
    if (!test_thread) system_calls.fetch_add(1, std::memory_order_relaxed);
    return ::syscall(number, arguments...);
}

void* allocate(std::size_t size) {
    if (!test_thread) allocations.fetch_add(1, std::memory_order_relaxed);
    if (void* memory = std::malloc(size ? size : 1)) return memory;
    throw std::bad_alloc();
}

}  // namespace

// All allocations of C++ come through here. Asio keeps small blocks of its own, which is part of
// what is counted: a block that is used again is no allocation.
void* operator new(std::size_t size) { return allocate(size); }
void* operator new[](std::size_t size) { return allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

// The calls of a server's loop, in place of the C library's.
extern "C" {
int epoll_ctl(int epoll, int what, int fd, epoll_event* event) noexcept {
    return static_cast<int>(counted(SYS_epoll_ctl, epoll, what, fd, event));
}
int epoll_wait(int epoll, epoll_event* events, int most, int milliseconds) {
    return static_cast<int>(counted(SYS_epoll_wait, epoll, events, most, milliseconds));
}
ssize_t recv(int fd, void* bytes, std::size_t size, int flags) {
    return counted(SYS_recvfrom, fd, bytes, size, flags, nullptr, nullptr);
}
ssize_t recvmsg(int fd, msghdr* message, int flags) {
    return counted(SYS_recvmsg, fd, message, flags);
}
ssize_t send(int fd, const void* bytes, std::size_t size, int flags) {
    return counted(SYS_sendto, fd, bytes, size, flags, nullptr, 0);
}
ssize_t sendmsg(int fd, const msghdr* message, int flags) {
    return counted(SYS_sendmsg, fd, message, flags);
}
}

namespace ddprun::store::test {
namespace {

using ddprun::test::within_limit;

class StoreCosts : public testing::Test {
  protected:
    StoreCosts() { test_thread = true; }

    // What the store does for each of many requests, whose answers have `size` bytes. The first
    // ones are not counted: buffers grow to their size then.
    double for_each(const std::atomic<long>& what, const Request& request, std::size_t size) {
        constexpr int kWarm = 100, kCounted = 1000;
        const std::string bytes = encode(request);
        ask(bytes, size, kWarm);
        const long before = what;
        ask(bytes, size, kCounted);
        return static_cast<double>(what - before) / kCounted;
    }
    void ask(const std::string& bytes, std::size_t size, int times) {
        for (int i = 0; i < times; ++i) {
            client_.send(bytes);
            ASSERT_EQ(client_.receive(size).size(), size);
        }
    }
    static std::string set_and_check(const std::string& key) {
        return encode({Operation::set, {key}, {std::string(64, 'v')}, 0}) +
               encode({Operation::check, {key}, {}, 0});
    }
    // Until its greeting the store takes a client for an old one.
    void greet() { client_.send(encode({Operation::validate, {}, {}, 0})); }

    Loopback loopback_;
    Raw client_{loopback_.port};
};

// A counter that exists, with the key of a process group.
TEST_F(StoreCosts, AnAddAllocatesLittle) {
    greet();
    const Request add{Operation::add, {"default_pg/0//cuda//timeout_count"}, {}, 1};
    EXPECT_TRUE(within_limit("allocations_store_add", for_each(allocations, add, 8)));
}

// A value of 64 bytes, which is copied into its answer.
TEST_F(StoreCosts, AGetAllocatesLittle) {
    greet();
    const std::string key = "default_pg/0//cuda//timeout_count";
    client_.send(encode({Operation::set, {key}, {std::string(64, 'v')}, 0}));
    EXPECT_TRUE(within_limit("allocations_store_get",
                             for_each(allocations, {Operation::get, {key}, {}, 0}, 8 + 64)));
}

// A SET has no answer, so the CHECK behind each tells that it is done.
TEST_F(StoreCosts, ASetOfAKeyThatExistsAllocatesLittle) {
    greet();
    const std::string key = "default_pg/0//cuda//timeout_count";
    ask(set_and_check(key), 1, 100);
    const long before = allocations;
    ask(set_and_check(key), 1, 1000);
    EXPECT_TRUE(
        within_limit("allocations_store_set", static_cast<double>(allocations - before) / 1000));
}

// The growth of the table is in it.
TEST_F(StoreCosts, ANewKeyAllocatesLittle) {
    greet();
    std::vector<std::string> requests;
    for (int key = 0; key < 1100; ++key)
        requests.push_back(set_and_check("default_pg/0//cuda//" + std::to_string(10000 + key)));
    long before = 0;
    for (std::size_t i = 0; i < requests.size(); ++i) {
        if (i == 100) before = allocations;
        ask(requests[i], 1, 1);
    }
    EXPECT_TRUE(within_limit("allocations_store_new_key",
                             static_cast<double>(allocations - before) / 1000));
}

// Waiting for the request, reading it, and sending its answer. Several clients share the first.
TEST_F(StoreCosts, ARequestNeedsThreeSystemCalls) {
    greet();
    const Request add{Operation::add, {"default_pg/0//cuda//timeout_count"}, {}, 1};
    EXPECT_TRUE(within_limit("system_calls_store_add", for_each(system_calls, add, 8)));
}

// Each waiter that a SET releases is sent its answer, and no more is done for it.
TEST_F(StoreCosts, AWaiterThatIsReleasedNeedsOneSystemCall) {
    constexpr std::size_t kWaiters = 100;
    greet();
    std::vector<std::unique_ptr<Raw>> waiters;
    for (std::size_t i = 0; i < kWaiters; ++i) {
        waiters.push_back(std::make_unique<Raw>(loopback_.port));
        waiters.back()->send(encode({Operation::validate, {}, {}, 0}) +
                             encode({Operation::ping, {}, {}, 7}) +
                             encode({Operation::wait, {"key"}, {}, 0}));
        ASSERT_EQ(waiters.back()->receive(4).size(), 4u);
    }
    const long before = system_calls;
    client_.send(set_and_check("key"));
    for (const auto& waiter : waiters) ASSERT_EQ(waiter->receive(1).size(), 1u);
    ASSERT_EQ(client_.receive(1).size(), 1u);
    EXPECT_TRUE(within_limit("system_calls_store_waiter",
                             static_cast<double>(system_calls - before) / kWaiters));
}

// The heap of the whole process: a Raw is a descriptor, and the kernel's part is not in it.
TEST_F(StoreCosts, AnIdleConnectionNeedsLittleMemory) {
    constexpr std::size_t kConnections = 500;
    rlimit limit{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
    std::vector<std::unique_ptr<Raw>> idle;
    idle.reserve(2 * kConnections);
    const auto connect = [&] {
        for (std::size_t i = 0; i < kConnections; ++i) {
            idle.push_back(std::make_unique<Raw>(loopback_.port));
            // The answer proves that the store has made its part of the connection.
            idle.back()->send(encode({Operation::validate, {}, {}, 0}) +
                              encode({Operation::ping, {}, {}, 7}));
            ASSERT_EQ(idle.back()->receive(4).size(), 4u);
        }
    };
    connect();  // tables and buffers have grown by then
    const std::size_t before = ::mallinfo2().uordblks;
    connect();
    const std::size_t grown = ::mallinfo2().uordblks - before;
    EXPECT_TRUE(within_limit("bytes_idle_store_connection",
                             static_cast<double>(grown) / static_cast<double>(kConnections)));
}

}  // namespace
}  // namespace ddprun::store::test
