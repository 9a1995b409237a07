// The blocking client against the real server on loopback, and against servers that behave badly.
#include "rendezvous/store/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "tests/rendezvous/store/loopback.h"

namespace ddprun::store {
namespace {

using namespace std::chrono_literals;
using test::kLong;
using testing::ElementsAre;
using testing::HasSubstr;

StoreClient connected(std::uint16_t port) {
    return std::move(StoreClient::connect("127.0.0.1", port, kLong).value());
}

// Every call once, with the answers that PyTorch's users know.
TEST(StoreClient, DoesWhatPyTorchsClientDoes) {
    test::Loopback loopback;
    StoreClient client = connected(loopback.port);
    ASSERT_TRUE(client.set("k", "v", kLong));
    EXPECT_EQ(client.get("k", kLong).value(), "v");
    EXPECT_EQ(client.add("n", 21, kLong).value(), 21);
    EXPECT_EQ(client.add("n", -24, kLong).value(), -3);
    EXPECT_EQ(client.get("n", kLong).value(), "-3");
    EXPECT_EQ(client.compare_set("c", "old", "new", kLong).value(), "old");
    EXPECT_EQ(client.compare_set("c", "", "new", kLong).value(), "new");
    EXPECT_TRUE(client.check({"k", "n"}, kLong).value());
    EXPECT_FALSE(client.check({"k", "none"}, kLong).value());
    ASSERT_TRUE(client.append("k", "w", kLong));
    ASSERT_TRUE(client.multi_set({{"a", "1"}, {"b", ""}}, kLong));
    EXPECT_THAT(client.multi_get({"b", "a", "k"}, kLong).value(), ElementsAre("", "1", "vw"));
    EXPECT_EQ(client.num_keys(kLong).value(), 5);
    EXPECT_TRUE(client.delete_key("a", kLong).value());
    EXPECT_FALSE(client.delete_key("a", kLong).value());
    ASSERT_TRUE(client.queue_push("q", "e", kLong));
    EXPECT_EQ(client.try_queue_pop("q", kLong).value(), "e");
    EXPECT_EQ(client.try_queue_pop("q", kLong).value(), std::nullopt);
}

// C++ and Python workers meet under the same keys: a user's "k" is "/k" on the wire.
TEST(StoreClient, StoresKeysAsPyTorchDoes) {
    test::Loopback loopback;
    StoreClient client = connected(loopback.port);
    ASSERT_TRUE(client.set("k", "v", kLong));
    EXPECT_EQ(client.num_keys(kLong).value(), 1);
    test::Raw raw(loopback.port);
    raw.send(encode({Operation::validate, {}, {}, 0}) + encode({Operation::list_keys, {}, {}, 0}));
    std::string expected;
    put_u64(expected, 1);
    put_text(expected, "/k");
    EXPECT_EQ(raw.receive(expected.size()), expected);
}

// get() waits for the key that another worker sets later.
TEST(StoreClient, WaitsForKeys) {
    test::Loopback loopback;
    auto waiting = std::async(std::launch::async, [&] {
        StoreClient client = connected(loopback.port);
        return client.get("later", kLong);
    });
    StoreClient client = connected(loopback.port);
    ASSERT_TRUE(client.set("later", "now", kLong));
    EXPECT_EQ(waiting.get().value(), "now");
}

// A wait that times out says for what and how long, and leaves the client usable.
TEST(StoreClient, SurvivesATimeout) {
    test::Loopback loopback;
    StoreClient client = connected(loopback.port);
    const auto missing = client.get("x", 30ms);
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code(), ErrorCode::timed_out);
    EXPECT_EQ(missing.error().sentence(), "store at 127.0.0.1:" + std::to_string(loopback.port) +
                                              ": key 'x' was not set within 0.03 s");
    EXPECT_THAT(client.wait({"a", "b", "c", "d"}, 1ms).error().sentence(),
                HasSubstr("not all of 4 keys ('a', 'b', 'c', …) were set within 0.001 s"));
    ASSERT_TRUE(client.set("x", "v", kLong));
    EXPECT_EQ(client.get("x", kLong).value(), "v");
}

// A value of many megabytes comes back as it went.
TEST(StoreClient, CarriesLargeValues) {
    test::Loopback loopback;
    StoreClient client = connected(loopback.port);
    std::string large(64 << 20, '\0');
    for (std::size_t i = 0; i < large.size(); i += 4093) large[i] = static_cast<char>(i);
    ASSERT_TRUE(client.set("large", large, kLong));
    EXPECT_TRUE(client.get("large", kLong).value() == large);
    EXPECT_TRUE(client.compare_set("large", large, "small", kLong).value() == "small");
}

// The workers may start before the store: connect() tries until it is there.
TEST(StoreClient, ConnectsToAStoreThatComesLater) {
    const test::Listening at = test::bind_v4();
    auto connecting = std::async(std::launch::async, [&] {
        return bool(StoreClient::connect("127.0.0.1", at.port, kLong));
    });
    EXPECT_EQ(connecting.wait_for(30ms), std::future_status::timeout);
    ASSERT_EQ(::listen(at.fd, 128), 0);
    test::Loopback loopback({}, at);
    EXPECT_TRUE(connecting.get());
}

// Nobody there: the sentence names the store, the reason and the time.
TEST(StoreClient, GivesUpWhenTheTimeIsUp) {
    const test::Listening at = test::bind_v4();
    const auto client = StoreClient::connect("127.0.0.1", at.port, 50ms);
    ::close(at.fd);
    ASSERT_FALSE(client);
    EXPECT_EQ(client.error().code(), ErrorCode::unavailable);
    EXPECT_EQ(client.error().sentence(), "store at 127.0.0.1:" + std::to_string(at.port) +
                                             ": Connection refused (tried for 0.05 s)");
}

// What accepts and stays silent is no store either; the time limit holds.
TEST(StoreClient, GivesUpOnASilentServer) {
    const test::Listening at = test::listen_v4();
    const auto client = StoreClient::connect("127.0.0.1", at.port, 50ms);
    ::close(at.fd);
    ASSERT_FALSE(client);
    EXPECT_EQ(client.error().code(), ErrorCode::unavailable);
    EXPECT_THAT(client.error().sentence(), HasSubstr("no answer in time (tried for 0.05 s)"));
}

// Another service on the port answers something else: said at once, not tried until the time is up.
TEST(StoreClient, RecognisesAnotherService) {
    const test::Listening at = test::listen_v4();
    std::thread other([&] {
        const int connection = ::accept(at.fd, nullptr, nullptr);
        EXPECT_EQ(::send(connection, "HTTP/1.1 400", 12, MSG_NOSIGNAL), 12);
        char byte;
        while (::recv(connection, &byte, 1, 0) > 0) {
        }
        ::close(connection);
    });
    const auto client = StoreClient::connect("127.0.0.1", at.port, kLong);
    other.join();
    ::close(at.fd);
    ASSERT_FALSE(client);
    EXPECT_EQ(client.error().code(), ErrorCode::malformed);
    EXPECT_THAT(client.error().sentence(), HasSubstr("is not a TCPStore"));
}

// The store's end ends a waiting call, and every later one says since when.
TEST(StoreClient, SaysThatTheStoreIsGone) {
    test::Loopback loopback;
    StoreClient client = connected(loopback.port);
    auto waiting = std::async(std::launch::async, [&] { return client.get("never", kLong); });
    EXPECT_EQ(waiting.wait_for(10ms), std::future_status::timeout);
    loopback.store.reset();
    const auto lost = waiting.get();
    ASSERT_FALSE(lost);
    EXPECT_EQ(lost.error().code(), ErrorCode::closed);
    EXPECT_THAT(client.add("n", 1, kLong).error().sentence(),
                HasSubstr("not usable any more since"));
}

// A connection that the store closed (here for an ADD on a word) is opened again by a call that
// reads; an ADD is never made twice, and says what happened.
TEST(StoreClient, OpensANewConnectionForACallThatReads) {
    test::Loopback loopback;
    StoreClient client = connected(loopback.port);
    ASSERT_TRUE(client.set("word", "abc", kLong));
    ASSERT_EQ(client.get("word", kLong).value(), "abc");
    EXPECT_EQ(client.add("word", 1, kLong).error().code(), ErrorCode::closed);
    EXPECT_THAT(client.add("n", 1, kLong).error().sentence(),
                HasSubstr("not usable any more since: ADD of 'word'"));
    EXPECT_EQ(client.get("word", kLong).value(), "abc");
    EXPECT_EQ(client.add("n", 1, kLong).value(), 1);
}

// What was written without an answer may be lost with the connection: nobody reads on as if it were
// there.
TEST(StoreClient, StaysLostWhenAWriteMayBe) {
    test::Loopback loopback;
    StoreClient client = connected(loopback.port);
    ASSERT_TRUE(client.set("word", "abc", kLong));
    EXPECT_FALSE(client.add("word", 1, kLong));
    EXPECT_THAT(client.get("word", kLong).error().sentence(), HasSubstr("may not have arrived"));
}

// The calls that PyTorch has since 2.8: queues that wait, the list of keys, a barrier.
TEST(StoreClient, DoesWhatTheNewestPyTorchDoes) {
    test::Loopback loopback;
    StoreClient client = connected(loopback.port);
    auto popped = std::async(std::launch::async,
                             [&] { return connected(loopback.port).queue_pop("q", kLong); });
    ASSERT_TRUE(client.queue_push("q", "e", kLong));
    EXPECT_EQ(popped.get().value(), "e");
    EXPECT_EQ(client.queue_len("q", kLong).value(), 0);
    EXPECT_THAT(client.queue_pop("q", 30ms).error().sentence(),
                HasSubstr("queue 'q' stayed empty for 0.03 s"));
    ASSERT_TRUE(client.set("k", "v", kLong));
    EXPECT_THAT(client.list_keys(kLong).value(), ElementsAre("k"));
    EXPECT_THAT(client.barrier("b", 2, 30ms).error().sentence(),
                HasSubstr("barrier 'b' was not reached by all 2 within 0.03 s"));
    EXPECT_TRUE(client.barrier("b", 2, kLong));  // who gave up stays counted
}

// Our server serves all dialects; the client speaks the one it is told to.
TEST(StoreClient, SpeaksTheDialectItIsTold) {
    test::Loopback loopback;
    for (const Dialect dialect : {Dialect::torch_1_13, Dialect::torch_2_1, Dialect::torch_2_2}) {
        auto client = StoreClient::connect("127.0.0.1", loopback.port, kLong, dialect);
        ASSERT_TRUE(client) << client.error();
        EXPECT_EQ(client->peer().dialect, dialect);
        EXPECT_TRUE(client->set("k", "v", kLong));
        EXPECT_EQ(client->get("k", kLong).value(), "v");
        EXPECT_EQ(client->get("never", 30ms).error().code(), ErrorCode::timed_out);
        EXPECT_EQ(client->get("k", kLong).value(), "v");
    }
}

// Many clients at once, each with a thread: every increment counts, and all meet at a key.
TEST(StoreClient, ManyClientsAtOnce) {
    test::Loopback loopback;
    constexpr int kClients = 16;
    std::vector<std::thread> threads;
    for (int i = 0; i < kClients; ++i) {
        threads.emplace_back([&] {
            StoreClient client = connected(loopback.port);
            std::int64_t last = 0;
            for (int j = 0; j < 200; ++j) last = client.add("n", 1, kLong).value();
            if (last == kClients * 200) (void)client.set("done", "1", kLong);
            EXPECT_EQ(client.get("done", kLong).value(), "1");
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(loopback.store->contacts(), static_cast<std::uint64_t>(kClients));
}

}  // namespace
}  // namespace ddprun::store
