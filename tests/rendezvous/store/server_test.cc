// The store as a TCP server: whom it lets in, and that no connection can harm another.
#include "rendezvous/store/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "rendezvous/store/client.h"
#include "tests/rendezvous/store/loopback.h"

namespace ddprun::store {
namespace {

using boost::asio::ip::make_address;
using test::kLong;
using test::Loopback;
using test::Raw;
using testing::HasSubstr;
using testing::SizeIs;

const std::string kGreeting = encode({Operation::validate, {}, {}, 0});

StoreClient connected(std::uint16_t port, const std::string& host = "127.0.0.1") {
    return std::move(StoreClient::connect(host, port, kLong).value());
}

std::string set(const std::string& key, const std::string& value) {
    return encode({Operation::set, {"/" + key}, {value}, 0});
}

// torch 1.13 sends code, length and text apart, and knows no greeting.
TEST(StoreServer, ServesOldClients) {
    Loopback loopback;
    Raw old(loopback.port);
    const std::string add = encode({Operation::add, {"init/"}, {}, 1}, Dialect::torch_1_13);
    old.send(add.substr(0, 1));
    old.send(add.substr(1, 8));
    old.send(add.substr(9));
    EXPECT_EQ(old.receive(8), number_reply(ConnectionId(), 1).bytes);
    old.send(encode({Operation::delete_key, {"init/"}, {}, 0}, Dialect::torch_1_13));
    EXPECT_EQ(old.receive(8), number_reply(ConnectionId(), 1).bytes);
}

// A worker may SET and exit at once.
TEST(StoreServer, WhatWasSentBeforeTheEndCounts) {
    Loopback loopback;
    StoreClient reader = connected(loopback.port);
    { Raw(loopback.port).send(kGreeting + set("last", "words")); }
    EXPECT_EQ(reader.get("last", kLong).value(), "words");
}

// Only members may come in; a stranger is closed at once and its address logged once.
TEST(StoreServer, RefusesStrangers) {
    ServerOptions options;
    options.allowed = std::set{make_address("10.1.2.3")};
    Loopback loopback(std::move(options));
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(Raw(loopback.port).ends());
    ASSERT_THAT(loopback.lines(), SizeIs(1));
    EXPECT_THAT(loopback.lines()[0],
                HasSubstr("refused a connection from 127.0.0.1, which is no address of a member"));
    EXPECT_THAT(loopback.lines()[0], HasSubstr("--store-allow"));
    EXPECT_EQ(loopback.store->contacts(), 0u);
}

// --store-allow: networks beside the members, and `any` as a network of everybody.
TEST(StoreServer, AdmitsFurtherNetworks) {
    for (const char* network : {"127.0.0.0/8", "::/0"}) {
        ServerOptions options;
        options.allowed = std::set{make_address("10.1.2.3")};
        options.also_allowed = {read_network("192.0.2.0/24").value(),
                                read_network(network).value()};
        Loopback loopback(std::move(options));
        EXPECT_EQ(connected(loopback.port).add("n", 1, kLong).value(), 1) << network;
        EXPECT_THAT(loopback.lines(), SizeIs(0));
    }
}

// On a socket for both kinds of addresses IPv4 arrives in IPv6's clothes, and is known all the
// same.
TEST(StoreServer, KnowsMappedAddresses) {
    const test::Listening at = test::listen_any();
    if (at.fd < 0) GTEST_SKIP() << "no IPv6 here";
    ServerOptions options;
    options.allowed = std::set{make_address("::ffff:127.0.0.1")};
    Loopback loopback(std::move(options), at);
    EXPECT_EQ(connected(loopback.port).add("n", 1, kLong).value(), 1);
    EXPECT_EQ(plain_address(make_address("::ffff:10.0.0.1")), make_address("10.0.0.1"));
    EXPECT_EQ(plain_address(make_address("fe80::1%7")), make_address("fe80::1"));
    EXPECT_EQ(plain_address(make_address("10.0.0.1")), make_address("10.0.0.1"));
}

// One reply may be larger than the limit: values may.
TEST(StoreServer, ALargeReplyIsNotASlowReader) {
    ServerOptions options;
    options.limits.max_queued = 1 << 20;
    Loopback loopback(std::move(options));
    StoreClient client = connected(loopback.port);
    const std::string large(24 << 20, 'x');
    ASSERT_TRUE(client.multi_set({{"a", large}, {"b", large}}, kLong));
    EXPECT_TRUE(client.multi_get({"a", "b"}, kLong).value().at(1) == large);
    EXPECT_EQ(client.add("n", 1, kLong).value(), 1);
    EXPECT_THAT(loopback.lines(), SizeIs(0));
}

// A hundred workers wait for one key, half of them die, one SET frees the rest.
TEST(StoreServer, FreesAHerdOfWaiters) {
    Loopback loopback;
    const std::string wait = kGreeting + encode({Operation::wait, {"/id"}, {}, 0}) +
                             encode({Operation::ping, {}, {}, 1});
    std::vector<std::unique_ptr<Raw>> herd;
    for (int i = 0; i < 100; ++i) {
        herd.push_back(std::make_unique<Raw>(loopback.port));
        herd.back()->send(wait);
        EXPECT_THAT(herd.back()->receive(4), SizeIs(4));  // the wait is known to the server
    }
    herd.resize(50);
    StoreClient setter = connected(loopback.port);
    ASSERT_TRUE(setter.set("id", "x", kLong));
    for (const auto& waiter : herd) EXPECT_EQ(waiter->receive(1), std::string(1, '\0'));
}

// First contact is a complete request: a silent connection, as torch 1.13 keeps one, is none.
TEST(StoreServer, CountsFirstContacts) {
    Loopback loopback;
    Raw silent(loopback.port);
    StoreClient first = connected(loopback.port);
    ASSERT_TRUE(first.set("k", "v", kLong));
    StoreClient second = connected(loopback.port);
    EXPECT_TRUE(loopback.wait_for_contacts(2));
    EXPECT_EQ(loopback.store->contacts(), 2u);
}

// Something that is no socket is the agent's mistake, and said so; the descriptor is taken all the
// same.
TEST(StoreThread, RefusesWhatIsNoSocket) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const auto store = StoreThread::start(ends[0], {});
    ::close(ends[1]);
    ASSERT_FALSE(store);
    EXPECT_EQ(store.error().code(), ErrorCode::internal);
    EXPECT_THAT(store.error().sentence(),
                HasSubstr("for the worker store: Socket operation on non-socket"));
}

// The next generation's store has none of the old one's keys, and the old one's connections are
// gone.
TEST(StoreThread, EachGenerationStartsEmpty) {
    auto old = std::make_unique<Loopback>();
    StoreClient worker = connected(old->port);
    ASSERT_TRUE(worker.set("k", "v", kLong));
    ASSERT_TRUE(worker.check({"k"}, kLong).value());
    old.reset();
    Loopback next;
    EXPECT_FALSE(connected(next.port).check({"k"}, kLong).value());
    EXPECT_EQ(worker.num_keys(kLong).error().code(), ErrorCode::closed);
}

}  // namespace
}  // namespace ddprun::store
