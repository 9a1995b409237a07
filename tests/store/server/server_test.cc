// The store as a TCP server on loopback: whom it admits, and that no connection can harm another
// one. abuse_test.cc has the peers that break rules.
#include "store/server/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include "store/client/client.h"
#include "tests/store/loopback.h"

namespace ddprun::store {
namespace {

using boost::asio::ip::make_address;
using boost::asio::ip::tcp;
using test::kLong;
using test::Loopback;
using test::Raw;
using testing::HasSubstr;
using testing::SizeIs;

const std::string kGreeting = encode({Operation::validate, {}, {}, 0});

StoreClient connected(std::uint16_t port, const std::string& host = "127.0.0.1") {
    return std::move(StoreClient::connect(host, port, kLong).value());
}

// A SET as PyTorch's client sends it, with "/" in front of the key.
std::string set(const std::string& key, const std::string& value) {
    return encode({Operation::set, {"/" + key}, {value}, 0});
}

// torch 1.13 knows no greeting. It sends the code, the length and the text of a request apart.
TEST(StoreServer, ServesOldClients) {
    Loopback loopback;
    Raw old(loopback.port);
    const std::string add = encode({Operation::add, {"init/"}, {}, 1}, Dialect::torch_1_13);
    old.send(add.substr(0, 1));
    old.send(add.substr(1, 8));
    old.send(add.substr(9));
    EXPECT_EQ(old.receive(8), number_reply(ConnectionId(), 1).bytes);
    // DELETE_KEY has code 8 here, which is APPEND in 2.1. The server must not wait for a value.
    old.send(encode({Operation::delete_key, {"init/"}, {}, 0}, Dialect::torch_1_13));
    EXPECT_EQ(old.receive(8), number_reply(ConnectionId(), 1).bytes);
}

// ddprun itself sets a key: whoever waits for it gets it, as of a client.
TEST(StoreThread, SetsAKeyForWhoWaits) {
    Loopback loopback;
    StoreClient reader = connected(loopback.port);
    Raw waiter(loopback.port);
    waiter.send(kGreeting + encode({Operation::wait, {"/event/0"}, {}, 0}));
    ASSERT_EQ(reader.add("before", 1, kLong).value(), 1);
    loopback.store->set("/event/0", "text");
    EXPECT_EQ(waiter.receive(1), std::string(1, '\0'));
    EXPECT_EQ(reader.get("event/0", kLong).value(), "text");
}

// A worker may SET its last result and exit at once. The result must not be lost.
TEST(StoreServer, WhatWasSentBeforeTheEndCounts) {
    Loopback loopback;
    StoreClient reader = connected(loopback.port);
    { Raw(loopback.port).send(kGreeting + set("last", "words")); }
    EXPECT_EQ(reader.get("last", kLong).value(), "words");
}

// Only the members' addresses may connect. A stranger is closed at once. Its address is logged
// once, with the option that admits it: a wrong guess of an interface is a frequent mistake.
TEST(StoreServer, RefusesStrangers) {
    ServerOptions options;
    options.who.members = {{"node", {make_address("10.1.2.3")}}};
    Loopback loopback(std::move(options));
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(Raw(loopback.port).ends());
    ASSERT_THAT(loopback.lines(), SizeIs(1));
    EXPECT_THAT(loopback.lines()[0],
                HasSubstr("refused a connection from 127.0.0.1, which is no address of a member"));
    EXPECT_THAT(loopback.lines()[0], HasSubstr("--store-allow"));
    EXPECT_EQ(loopback.store->contacts(), 0u);
}

// --store-allow admits networks beside the members: one network, or everybody (::/0).
TEST(StoreServer, AdmitsFurtherNetworks) {
    for (const char* network : {"127.0.0.0/8", "::/0"}) {
        ServerOptions options;
        options.who.members = {{"node", {make_address("10.1.2.3")}}};
        // The first network does not match, so the list is read to its end.
        options.who.also_allowed = {read_network("192.0.2.0/24").value(),
                                    read_network(network).value()};
        Loopback loopback(std::move(options));
        EXPECT_EQ(connected(loopback.port).add("n", 1, kLong).value(), 1) << network;
        EXPECT_THAT(loopback.lines(), SizeIs(0));
    }
}

// Another user of this host, at an address of the job. Users who are not root cannot become another
// one; for them the job's user is another.
TEST(StoreServer, RefusesOtherUsersOfItsHost) {
    const bool is_root = ::geteuid() == 0;
    const uid_t caller = is_root ? 65534 : ::geteuid();
    ServerOptions options;
    options.who.members = {{"node", {make_address("127.0.0.1")}}};
    options.who.user = caller + 1;
    Loopback loopback(std::move(options));
    // The user of a socket is who made it.
    ASSERT_EQ(is_root ? ::seteuid(caller) : 0, 0);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(Raw(loopback.port).ends());
    ASSERT_EQ(is_root ? ::seteuid(0) : 0, 0);
    ASSERT_THAT(loopback.lines(), SizeIs(1));
    EXPECT_THAT(loopback.lines()[0], HasSubstr("of user " + std::to_string(caller)));
    EXPECT_THAT(loopback.lines()[0], HasSubstr("--store-allow=127.0.0.1"));
    EXPECT_EQ(loopback.store->contacts(), 0u);
}

// Our own sockets, of both families, at a store that listens for both.
TEST(StoreServer, AdmitsItsUser) {
    const test::Listening at = test::listen_any();
    if (at.fd < 0) GTEST_SKIP() << "no IPv6 here";
    ServerOptions options;
    options.who.members = {{"node", {make_address("127.0.0.1"), make_address("::1")}}};
    options.who.user = ::geteuid();
    Loopback loopback(std::move(options), at);
    EXPECT_EQ(connected(loopback.port).add("n", 1, kLong).value(), 1);
    StoreClient six = connected(loopback.port, "::1");
    EXPECT_EQ(six.add("n", 1, kLong).value(), 2);
    EXPECT_THAT(loopback.lines(), SizeIs(0));
}

// What a process has sent before it closed its socket can still be read, and the kernel then calls
// root the owner. Here the caller is gone before the store looks. Every client waits for an answer
// after it has connected, so none that was admitted loses its last words.
TEST(StoreServer, RefusesWhoHasGone) {
    const test::Listening at = test::listen_v4();
    boost::asio::io_context loop;
    tcp::socket gone(loop);
    gone.connect({make_address("127.0.0.1"), at.port});
    const tcp::endpoint theirs = gone.local_endpoint();
    SocketUsers users(::geteuid());
    const tcp::endpoint ours(make_address("127.0.0.1"), at.port);
    EXPECT_EQ(users.owner(theirs, ours).whose, Whose::ours);
    boost::asio::write(gone,
                       boost::asio::buffer(kGreeting + encode({Operation::add, {"/n"}, {}, 1})));
    gone.close();
    EXPECT_EQ(users.owner(theirs, ours).whose, Whose::gone);
    ServerOptions options;
    options.who.members = {{"node", {make_address("127.0.0.1")}}};
    options.who.user = ::geteuid();
    Loopback loopback(std::move(options), at);
    EXPECT_EQ(connected(loopback.port).add("n", 1, kLong).value(), 1)
        << "its request was not served";
}

// The caller has aborted its connection, and root connects from the same port: the kernel then
// calls root the owner, though what the first caller has sent can still be read.
TEST(StoreServer, RefusesWhoHasBeenReplaced) {
    if (::geteuid() != 0) GTEST_SKIP() << "two users are needed";
    const test::Listening at = test::listen_v4();
    const tcp::endpoint ours(make_address("127.0.0.1"), at.port);
    boost::asio::io_context loop;
    tcp::socket stranger(loop), root(loop);
    ASSERT_EQ(::seteuid(65534), 0);
    stranger.open(tcp::v4());
    ASSERT_EQ(::seteuid(0), 0);
    // A port that is nobody else's at this address, so that root can have it next.
    stranger.bind({make_address("127.7.0.2"), 0});
    stranger.connect(ours);
    const tcp::endpoint theirs = stranger.local_endpoint();
    boost::asio::write(stranger,
                       boost::asio::buffer(kGreeting + encode({Operation::add, {"/n"}, {}, 1})));
    stranger.set_option(boost::asio::socket_base::linger(true, 0));
    stranger.close();
    root.open(tcp::v4());
    root.set_option(boost::asio::socket_base::reuse_address(true));
    root.bind(theirs);
    root.connect(ours);
    EXPECT_EQ(SocketUsers(65533).owner(theirs, ours).whose, Whose::ours);
    ServerOptions options;
    options.who.members = {{"node", {make_address("127.7.0.2")}}};
    options.who.user = 65533;
    Loopback loopback(std::move(options), at);
    boost::asio::write(root,
                       boost::asio::buffer(kGreeting + encode({Operation::add, {"/n"}, {}, 1})));
    std::string reply(8, '\0');
    boost::asio::read(root, boost::asio::buffer(reply));
    EXPECT_EQ(reply, number_reply(ConnectionId(), 1).bytes) << "the stranger was served";
    EXPECT_THAT(loopback.wait_for_line("had ended before"), HasSubstr("--store-allow=127.7.0.2"));
}

// A socket for both kinds of addresses reports IPv4 callers as ::ffff:a.b.c.d. Members must be
// admitted all the same. A link-local address loses its interface: that number means nothing on
// another host.
TEST(StoreServer, KnowsMappedAddresses) {
    const test::Listening at = test::listen_any();
    if (at.fd < 0) GTEST_SKIP() << "no IPv6 here";
    ServerOptions options;
    options.who.members = {{"node", {make_address("::ffff:127.0.0.1")}}};
    Loopback loopback(std::move(options), at);
    EXPECT_EQ(connected(loopback.port).add("n", 1, kLong).value(), 1);
    EXPECT_EQ(plain_address(make_address("::ffff:10.0.0.1")), make_address("10.0.0.1"));
    EXPECT_EQ(plain_address(make_address("fe80::1%7")), make_address("fe80::1"));
    EXPECT_EQ(plain_address(make_address("10.0.0.1")), make_address("10.0.0.1"));
}

// Two values of 24 MiB against a limit of 1 MiB for queued replies. The reply to one request may be
// larger than the limit, since values may be. Closing here would end a healthy worker.
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

// A hundred workers wait for one key, half of them die, and one SET frees the rest.
TEST(StoreServer, FreesAHerdOfWaiters) {
    Loopback loopback;
    const std::string wait = kGreeting + encode({Operation::wait, {"/id"}, {}, 0}) +
                             encode({Operation::ping, {}, {}, 1});
    std::vector<std::unique_ptr<Raw>> herd;
    for (int i = 0; i < 100; ++i) {
        herd.push_back(std::make_unique<Raw>(loopback.port));
        herd.back()->send(wait);
        // The answer to PING: the WAIT before it is registered.
        EXPECT_THAT(herd.back()->receive(4), SizeIs(4));
    }
    EXPECT_EQ(loopback.store->waiters(), 100);
    herd.resize(50);
    StoreClient setter = connected(loopback.port);
    ASSERT_TRUE(setter.set("id", "x", kLong));
    for (const auto& waiter : herd) EXPECT_EQ(waiter->receive(1), std::string(1, '\0'));
    EXPECT_EQ(loopback.store->waiters(), 0);
    EXPECT_GT(loopback.store->operations(), 200) << "a PING and a WAIT of each";
}

// First contacts show the agent that its workers have reached the store. A complete request is one;
// the silent second connection of torch 1.13 is none.
TEST(StoreServer, CountsFirstContacts) {
    Loopback loopback;
    Raw silent(loopback.port);
    StoreClient first = connected(loopback.port);
    ASSERT_TRUE(first.set("k", "v", kLong));
    StoreClient second = connected(loopback.port);
    EXPECT_TRUE(loopback.wait_for_contacts(2));
    EXPECT_EQ(loopback.store->contacts(), 2u);
}

// A torch process says once that it has arrived, and may make further connections: clones of its
// store. They are no further processes. So one process of two never looks like both.
TEST(StoreServer, CountsProcessesThatSayThatTheyHaveArrived) {
    Loopback loopback;
    const std::string arrives = kGreeting + encode({Operation::add, {"init/"}, {}, 1});
    Raw first(loopback.port);
    first.send(arrives);
    EXPECT_THAT(first.receive(8), SizeIs(8));
    StoreClient clone = connected(loopback.port);
    ASSERT_TRUE(clone.add("init/", 1, kLong)) << "a program's key: the client sends /init/";
    EXPECT_EQ(loopback.store->contacts(), 2u);
    EXPECT_EQ(loopback.contacts(), 1);
    Raw second(loopback.port);
    second.send(arrives);
    EXPECT_TRUE(loopback.wait_for_contacts(2));
}

// The agent hands over a wrong descriptor: a fault of ddprun, so the error is internal. start()
// owns the descriptor all the same, and closes it.
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

// The next generation's store has no key of the old one, and the old one's connections are gone. A
// key that stayed could mislead the workers of the next start.
TEST(StoreThread, EachGenerationStartsEmpty) {
    auto old = std::make_unique<Loopback>();
    StoreClient worker = connected(old->port);
    ASSERT_TRUE(worker.set("k", "v", kLong));
    // The SET has arrived.
    ASSERT_TRUE(worker.check({"k"}, kLong).value());
    old.reset();
    Loopback next;
    EXPECT_FALSE(connected(next.port).check({"k"}, kLong).value());
    EXPECT_EQ(worker.num_keys(kLong).error().code(), ErrorCode::closed);
}

}  // namespace
}  // namespace ddprun::store
