// The awaitable client against the real server on loopback. tests/e2e/pytorch_store.sh makes every
// call of this client against PyTorch's servers (store_calls); these tests are about coroutines.
#include "agent/pmi/async_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include "store/client/client.h"
#include "tests/store/loopback.h"

namespace ddprun::store {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using namespace asio::experimental::awaitable_operators;
using test::kLong;
using testing::HasSubstr;

// A store on its own thread, and a loop that runs one test coroutine to its end.
class AsyncClient : public testing::Test {
  protected:
    // get() throws again what the coroutine has thrown, so the test fails instead of going on.
    void run(asio::awaitable<void> test) {
        auto done = asio::co_spawn(io_, std::move(test), asio::use_future);
        io_.run();
        done.get();
    }
    AsyncStoreClient client() { return {io_.get_executor(), "127.0.0.1", loopback_.port}; }

    test::Loopback loopback_;
    asio::io_context io_;
};

// A coroutine waits for the key that another coroutine of the same thread sets. A client that
// blocks the loop fails here.
TEST_F(AsyncClient, WaitsBesideOthersOnOneLoop) {
    AsyncStoreClient waiting = client();
    AsyncStoreClient setting = client();
    const auto wait = [&]() -> asio::awaitable<std::string> {
        EXPECT_TRUE(co_await waiting.connect(kLong));
        co_return (co_await waiting.run(tasks::get("later"), kLong)).value();
    };
    const auto set = [&]() -> asio::awaitable<void> {
        EXPECT_TRUE(co_await setting.connect(kLong));
        EXPECT_EQ((co_await setting.run(tasks::add("n", 2), kLong)).value(), 2);
        EXPECT_TRUE(co_await setting.run(tasks::set("later", "now"), kLong));
    };
    run([&]() -> asio::awaitable<void> { EXPECT_EQ(co_await (wait() && set()), "now"); }());
}

// The wait times out after 30 ms. The same connection must still serve the next calls.
TEST_F(AsyncClient, GoesOnAfterAWaitInVain) {
    AsyncStoreClient one = client();
    run([&]() -> asio::awaitable<void> {
        EXPECT_TRUE(co_await one.connect(kLong));
        const auto missing = co_await one.run(tasks::get("x"), 30ms);
        EXPECT_THAT(missing.error().sentence(), HasSubstr("key 'x' was not set within 0.03 s"));
        EXPECT_TRUE(co_await one.run(tasks::set("x", "v"), kLong));
        EXPECT_EQ((co_await one.run(tasks::get("x"), kLong)).value(), "v");
    }());
}

// A program gives up a call, here with a timer of 10 ms. Nobody knows what the server still
// answers, so the connection goes. The next ADD fails and says so, because it may follow a lost
// write.
TEST_F(AsyncClient, ACancelledCallCostsTheConnectionOnly) {
    // Has a name: g++ 12 cannot compile initializer lists in coroutines.
    const tasks::Keys never{"never"};
    AsyncStoreClient one = client();
    run([&]() -> asio::awaitable<void> {
        EXPECT_TRUE(co_await one.connect(kLong));
        asio::steady_timer timer(io_, 10ms);
        const auto first =
            co_await (one.run(tasks::wait(never), kLong) || timer.async_wait(asio::use_awaitable));
        // 1: the timer was first.
        EXPECT_EQ(first.index(), 1u);
        const auto next = co_await one.run(tasks::add("n", 1), kLong);
        EXPECT_EQ(next.error().code(), ErrorCode::closed);
    }());
}

// The port is bound and nobody listens, so each attempt is refused. The client tries again until
// its time is up: the store may come later.
TEST_F(AsyncClient, GivesUpWhenNobodyIsThere) {
    const test::Listening at = test::bind_v4();
    AsyncStoreClient one(io_.get_executor(), "127.0.0.1", at.port);
    run([&]() -> asio::awaitable<void> {
        const auto connected = co_await one.connect(50ms);
        EXPECT_EQ(connected.error().code(), ErrorCode::unavailable);
        EXPECT_THAT(connected.error().sentence(), HasSubstr("(tried for 0.05 s)"));
    }());
    ::close(at.fd);
}

}  // namespace
}  // namespace ddprun::store
