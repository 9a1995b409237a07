// Requests that take long, and replies that nobody takes: other clients are served meanwhile, and
// what a peer has left unread goes with it. The server runs on the test's own loop, turn by turn.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/server/server.h"
#include "tests/store/loopback.h"

namespace ddprun::store {
namespace {

using boost::asio::ip::tcp;
using test::kLong;
using test::Raw;

const std::string kGreeting = encode({Operation::validate, {}, {}, 0});
const std::string kList = encode({Operation::list_keys, {}, {}, 0});

std::string set(const std::string& key, const std::string& value) {
    return encode({Operation::set, {"/" + key}, {value}, 0});
}

class LongRequests : public testing::Test {
  protected:
    void open(Limits limits = {}) {
        ServerOptions options;
        options.limits = limits;
        options.log = [this](const std::string& line) { lines_.push_back(line); };
        server_.emplace(tcp::acceptor(io_, tcp::v4(), at_.fd), std::move(options));
        server_->start();
        server_->sockets().follow(io_.get_executor());
    }
    void settle() {
        while (io_.poll() > 0) {
        }
    }
    // So many keys, in requests of 100.
    void fill(Raw& by, int hundreds) {
        for (int i = 0; i < hundreds; ++i) {
            std::string keys;
            for (int k = 0; k < 100; ++k)
                keys += set(std::string(100, 'k') + std::to_string(100 * i + k), "");
            by.send(keys);
            settle();
        }
    }
    // Runs the server until the client has got a byte.
    std::string awaited(Raw& client) {
        std::string answer;
        for (int turn = 0; answer.empty() && turn < 100'000; ++turn) {
            io_.run_one_for(std::chrono::milliseconds{100});
            answer = client.receive_now();
        }
        return answer;
    }

    boost::asio::io_context io_;
    test::Listening at_ = test::listen_v4();
    std::vector<std::string> lines_;
    std::optional<Server> server_;
};

// One client asks for 50 lists of a megabyte in 50 bytes, then sets a key. Another one is served
// before all of that is done.
TEST_F(LongRequests, OfOneTakeTurnsWithOthers) {
    open();
    Raw greedy(at_.port), other(at_.port);
    greedy.send(kGreeting);
    other.send(kGreeting + set("mine", ""));
    fill(greedy, 100);
    std::string lists;
    for (int i = 0; i < 50; ++i) lists += kList;
    greedy.send(lists + set("done", ""));
    io_.run_one_for(kLong);
    other.send(encode({Operation::check, {"/done"}, {}, 0}));
    EXPECT_EQ(awaited(other), "\x01") << "not ready: not all lists have been made";
}

// A single list of 20,000 keys. Another client is served in the middle of it.
TEST_F(LongRequests, AListOfManyKeysIsMadeInTurns) {
    open();
    Raw greedy(at_.port), other(at_.port);
    greedy.send(kGreeting);
    other.send(kGreeting);
    fill(greedy, 200);
    greedy.send(kList);
    io_.run_one_for(kLong);
    other.send(encode({Operation::check, {"/done"}, {}, 0}));
    EXPECT_EQ(awaited(other), "\x01");
    EXPECT_EQ(greedy.receive_now(), "") << "the list was made in one turn";
    // The request behind the list has to wait for it.
    greedy.send(encode({Operation::ping, {}, {}, 7}));
    std::string count;
    while (count.size() < 8) count += awaited(greedy);
    EXPECT_EQ(count, number_reply(ConnectionId(), 20'000).bytes);
}

// A peer asks for lists and does not read them, until the store is full. Its end gives all of that
// memory back.
TEST_F(LongRequests, WhatAPeerHasNotReadGoesWithIt) {
    Limits limits;
    limits.max_memory = 20 << 20;
    open(limits);
    Raw other(at_.port);
    other.send(kGreeting);
    fill(other, 100);
    const std::string large = set("large", std::string(9 << 20, 'x'));
    {
        Raw deaf(at_.port);
        std::string lists = kGreeting;
        for (int i = 0; i < 10; ++i) lists += kList;
        deaf.send(lists);
        settle();
        EXPECT_EQ(server_->connections(), 2u);
    }
    for (int turn = 0; server_->connections() > 1 && turn < 1000; ++turn)
        io_.run_one_for(std::chrono::milliseconds{100});
    EXPECT_EQ(server_->connections(), 1u);
    std::thread sender([&] { other.send(large + encode({Operation::ping, {}, {}, 7})); });
    EXPECT_NE(awaited(other), "");
    sender.join();
    EXPECT_THAT(lines_, testing::IsEmpty());
}

// The same in the middle of a list.
TEST(KeyValuesLists, EndWithTheirConnectionAndBeginAnewWhenTheTableGrows) {
    KeyValues store;
    std::vector<Reply> replies;
    const auto put = [&](int first, int last) {
        for (int i = first; i < last; ++i)
            ASSERT_TRUE(store.handle(
                ConnectionId(1), {Operation::set, {"/" + std::to_string(i)}, {""}, 0}, replies));
    };
    const auto list = [&](int from) {
        EXPECT_TRUE(store.handle(ConnectionId(from), {Operation::list_keys, {}, {}, 0}, replies));
    };
    put(0, 20'000);
    const std::uint64_t before = store.memory().used;
    list(1);
    EXPECT_TRUE(store.is_listing(ConnectionId(1)));
    EXPECT_GT(store.memory().used, before);
    store.closed(ConnectionId(1));
    EXPECT_FALSE(store.is_listing(ConnectionId(1)));
    EXPECT_EQ(store.memory().used, before);
    // The table grows to five times its size during a list.
    list(2);
    put(20'000, 100'000);
    for (int turns = 0; store.is_listing(ConnectionId(2)) && turns < 1000; ++turns) list(2);
    ASSERT_EQ(replies.size(), 1u);
    EXPECT_EQ(replies[0].bytes.substr(0, 8), number_reply(ConnectionId(), 100'000).bytes);
}

}  // namespace
}  // namespace ddprun::store
