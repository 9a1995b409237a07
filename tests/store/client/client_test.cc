// The blocking client against the real server on loopback, and against peers that are no store.
#include "store/client/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "tests/store/loopback.h"

namespace ddprun::store {
namespace {

using namespace std::chrono_literals;
using test::kLong;
using testing::ElementsAre;
using testing::HasSubstr;

// A client that has found out the server's dialect; fails the test by an exception if there is
// none.
StoreClient connected(std::uint16_t port) {
    return std::move(StoreClient::connect("127.0.0.1", port, kLong).value());
}

// Every call once, with the answers that users of PyTorch's store know.
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

// C++ and Python workers meet under the same keys only if a user's "k" travels as "/k".
TEST(StoreClient, StoresKeysAsPyTorchDoes) {
    test::Loopback loopback;
    StoreClient client = connected(loopback.port);
    ASSERT_TRUE(client.set("k", "v", kLong));
    // SET has no answer. This call proves that it has arrived before another connection looks.
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

// The commonest error that a user sees: a key that nobody sets. The sentence names the store, the
// key and the time limit, and the client is usable afterwards.
TEST(StoreClient, SurvivesATimeout) {
    test::Loopback loopback;
    StoreClient client = connected(loopback.port);
    const auto missing = client.get("x", 30ms);
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code(), ErrorCode::timed_out);
    EXPECT_EQ(missing.error().sentence(), "store at 127.0.0.1:" + std::to_string(loopback.port) +
                                              ": key 'x' was not set within 0.03 s");
    EXPECT_THAT(client.wait({"a", "b", "c", "d"}, 1ms).error().sentence(),
                // Three keys are named at most.
                HasSubstr("not all of 4 keys ('a', 'b', 'c', …) were set within 0.001 s"));
    ASSERT_TRUE(client.set("x", "v", kLong));
    EXPECT_EQ(client.get("x", kLong).value(), "v");
}

// A large value travels in many pieces, and must come back bit by bit.
TEST(StoreClient, CarriesLargeValues) {
    test::Loopback loopback;
    StoreClient client = connected(loopback.port);
    std::string large(64 << 20, '\0');
    // A mark every 4093 bytes. That is no multiple of a block size, so a block in a wrong place
    // shows.
    for (std::size_t i = 0; i < large.size(); i += 4093) large[i] = static_cast<char>(i);
    ASSERT_TRUE(client.set("large", large, kLong));
    EXPECT_TRUE(client.get("large", kLong).value() == large);
    // A large value as an argument of a call that is answered.
    EXPECT_TRUE(client.compare_set("large", large, "small", kLong).value() == "small");
}

// Workers may start before the node with the store. connect() tries until the store is there.
TEST(StoreClient, ConnectsToAStoreThatComesLater) {
    const test::Listening at = test::bind_v4();
    auto connecting = std::async(std::launch::async, [&] {
        return bool(StoreClient::connect("127.0.0.1", at.port, kLong));
    });
    // The port is bound but nobody listens, so the first attempts are refused. 30 ms leave time for
    // a few.
    EXPECT_EQ(connecting.wait_for(30ms), std::future_status::timeout);
    ASSERT_EQ(::listen(at.fd, 128), 0);
    test::Loopback loopback({}, at);
    EXPECT_TRUE(connecting.get());
}

// Nobody comes: the sentence names the store, the reason and the time.
TEST(StoreClient, GivesUpWhenTheTimeIsUp) {
    const test::Listening at = test::bind_v4();
    const auto client = StoreClient::connect("127.0.0.1", at.port, 50ms);
    ::close(at.fd);
    ASSERT_FALSE(client);
    EXPECT_EQ(client.error().code(), ErrorCode::unavailable);
    EXPECT_EQ(client.error().sentence(), "store at 127.0.0.1:" + std::to_string(at.port) +
                                             ": Connection refused (tried for 0.05 s)");
}

// A peer that accepts and stays silent is no store either. The time limit holds there, too: a
// worker must not hang in connect().
TEST(StoreClient, GivesUpOnASilentServer) {
    const test::Listening at = test::listen_v4();
    const auto client = StoreClient::connect("127.0.0.1", at.port, 50ms);
    ::close(at.fd);
    ASSERT_FALSE(client);
    EXPECT_EQ(client.error().code(), ErrorCode::unavailable);
    EXPECT_THAT(client.error().sentence(), HasSubstr("no answer in time (tried for 0.05 s)"));
}

// Another service has the port and answers something else. The client says so at once, and does not
// try until its time is up.
TEST(StoreClient, RecognisesAnotherService) {
    const test::Listening at = test::listen_v4();
    // Answers once, then reads until the client closes.
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

// The store's node dies. A waiting call must end, and every later one says since when and why.
TEST(StoreClient, SaysThatTheStoreIsGone) {
    test::Loopback loopback;
    StoreClient client = connected(loopback.port);
    auto waiting = std::async(std::launch::async, [&] { return client.get("never", kLong); });
    // 10 ms, so that the call is probably waiting when the store goes. The result is the same
    // before.
    EXPECT_EQ(waiting.wait_for(10ms), std::future_status::timeout);
    loopback.store.reset();
    const auto lost = waiting.get();
    ASSERT_FALSE(lost);
    EXPECT_EQ(lost.error().code(), ErrorCode::closed);
    EXPECT_THAT(client.add("n", 1, kLong).error().sentence(),
                HasSubstr("not usable any more since"));
}

// The store closes the connection, here for an ADD on a word. A call that reads connects again. An
// ADD is never made twice; it fails and says what happened.
TEST(StoreClient, OpensANewConnectionForACallThatReads) {
    test::Loopback loopback;
    StoreClient client = connected(loopback.port);
    ASSERT_TRUE(client.set("word", "abc", kLong));
    // An answer after the SET: nothing that was written can be lost.
    ASSERT_EQ(client.get("word", kLong).value(), "abc");
    EXPECT_EQ(client.add("word", 1, kLong).error().code(), ErrorCode::closed);
    EXPECT_THAT(client.add("n", 1, kLong).error().sentence(),
                HasSubstr("not usable any more since: ADD of 'word'"));
    EXPECT_EQ(client.get("word", kLong).value(), "abc");
    EXPECT_EQ(client.add("n", 1, kLong).value(), 1);
}

// The same without an answer after the SET. The SET may be lost with the connection, and a client
// that reads on would take the missing key for the truth. So even reading calls fail.
TEST(StoreClient, StaysLostWhenAWriteMayBe) {
    test::Loopback loopback;
    StoreClient client = connected(loopback.port);
    ASSERT_TRUE(client.set("word", "abc", kLong));
    EXPECT_FALSE(client.add("word", 1, kLong));
    EXPECT_THAT(client.get("word", kLong).error().sentence(), HasSubstr("may not have arrived"));
}

// The newest calls: queues that wait (PyTorch 2.8), the list of keys (2.10), a barrier (2.12).
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
    // A client that gave up stays counted, so it arrives as the second of two.
    EXPECT_TRUE(client.barrier("b", 2, kLong));
}

// A caller that knows the version of its server names it. Our server serves every dialect, also a
// wait that 1.13 cannot take back.
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

// 16 clients with a thread each: no increment is lost, and all of them meet at a key.
TEST(StoreClient, ManyClientsAtOnce) {
    test::Loopback loopback;
    constexpr int kClients = 16;
    std::vector<std::thread> threads;
    for (int i = 0; i < kClients; ++i) {
        threads.emplace_back([&] {
            StoreClient client = connected(loopback.port);
            std::int64_t last = 0;
            for (int j = 0; j < 200; ++j) last = client.add("n", 1, kLong).value();
            // Only one client sees the last sum.
            if (last == kClients * 200) (void)client.set("done", "1", kLong);
            EXPECT_EQ(client.get("done", kLong).value(), "1");
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(loopback.store->contacts(), static_cast<std::uint64_t>(kClients));
}

}  // namespace
}  // namespace ddprun::store
