// The endpoint over real sockets, with services that only keep what they get: each caller reaches
// its service with every byte that it has sent. Silence and strangers harm only themselves.
#include "daemon/endpoint.h"

#include <gmock/gmock.h>

#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <list>

#include "rendezvous/wire/frame.h"
#include "rendezvous/wire/wire.h"
#include "tests/rendezvous/examples.h"
#include "tests/support/loop.h"

namespace ddprun::rendezvous {
namespace {

using namespace std::chrono_literals;

// What a node sends first.
std::string hello_bytes() {
    return std::string(kPreface) + frame(encode(examples_to_leader().front()));
}

// An endpoint and its services. Defaults: c10d is served, 10 s of silence, 100 silent callers; no
// test reaches these limits by accident.
struct Port {
    explicit Port(bool c10d = true, Duration silence = 10s, std::size_t most_silent = 100) {
        tcp::acceptor acceptor = listener(loop);
        address = acceptor.local_endpoint();
        Endpoint::Services services;
        services.agent_link = [this](tcp::socket socket) { nodes.push_back(std::move(socket)); };
        if (c10d)
            services.c10d = [this](tcp::socket socket) { clients.push_back(std::move(socket)); };
        services.has_c10d_from = [this](const asio::ip::address&) { return !clients.empty(); };
        endpoint.emplace(loop, std::move(acceptor), std::move(services), lines.log(),
                         Endpoint::Patience{silence, most_silent});
        endpoint->start();
    }
    bool until(const std::function<bool()>& condition) { return run_until(loop, condition); }

    asio::io_context loop;
    tcp::endpoint address;
    Lines lines;
    std::list<tcp::socket> nodes, clients;
    std::optional<Endpoint> endpoint;
};

// A connection to it that sends what the test wants.
struct Caller {
    explicit Caller(Port& port) : socket(port.loop) { socket.connect(port.address); }
    Caller(Port& port, const std::string& bytes) : Caller(port) { say(bytes); }
    void say(const std::string& bytes) { asio::write(socket, asio::buffer(bytes)); }
    // Looks by reading: the end of the stream or a reset shows that the endpoint has closed it.
    // Takes no byte.
    bool is_closed() {
        char byte;
        boost::system::error_code error;
        socket.non_blocking(true);
        socket.receive(asio::buffer(&byte, 1), tcp::socket::message_peek, error);
        return error && error != asio::error::would_block;
    }
    tcp::socket socket;
};

// The bytes that the service finds in the socket.
std::string read_all(tcp::socket& socket, std::size_t size) {
    std::string bytes(size, '\0');
    socket.non_blocking(false);
    asio::read(socket, asio::buffer(bytes));
    return bytes;
}

// A node and a client of PyTorch's store call the same port. Each one's service must find its first
// bytes in the socket: the endpoint has only looked at them.
TEST(Endpoint, HandsEachCallerToItsService) {
    Port port;
    // Code 3 is ADD of old clients: they have no greeting.
    Caller node(port, hello_bytes()), client(port, "\x03");
    ASSERT_TRUE(port.until([&] { return !port.nodes.empty() && !port.clients.empty(); }));
    EXPECT_EQ(read_all(port.nodes.front(), hello_bytes().size()), hello_bytes());
    EXPECT_EQ(read_all(port.clients.front(), 1), "\x03");
    EXPECT_EQ(port.endpoint->silent(), 0u);
}

// A large Hello, cut within the preface, within the length, and within the body. The service that
// gets the socket must be woken by a single byte again: the endpoint has asked the kernel to report
// it only when the whole Hello is there.
TEST(Endpoint, WaitsForAHelloInPieces) {
    Port port;
    Hello large = std::get<Hello>(examples_to_leader().front());
    large.run_id.assign(1024, 'r');
    large.node.name.assign(255, 'n');
    const std::string bytes = std::string(kPreface) + frame(encode(ToLeader(large)));
    Caller node(port);
    // `cut` is where this piece ends, `sent` where the one before has ended.
    for (const std::size_t cut : {3u, 9u, 30u, 1100u}) {
        const std::size_t sent = cut == 3 ? 0 : cut == 9 ? 3 : cut == 30 ? 9 : 30;
        node.say(bytes.substr(sent, cut - sent));
        ASSERT_TRUE(port.until([&] { return port.endpoint->silent() == 1; }));
        settle(port.loop);
        EXPECT_TRUE(port.nodes.empty());
    }
    node.say(bytes.substr(1100));
    ASSERT_TRUE(port.until([&] { return !port.nodes.empty(); }));
    EXPECT_EQ(read_all(port.nodes.front(), bytes.size()), bytes);
    bool woken = false;
    port.nodes.front().async_wait(tcp::socket::wait_read,
                                  [&](boost::system::error_code) { woken = true; });
    node.say("1");
    EXPECT_TRUE(port.until([&] { return woken; }));
}

// A port scanner calls again and again. One line for each address names the program by its first
// bytes.
TEST(Endpoint, ClosesStrangersWithOneLineForEachAddress) {
    Port port;
    Caller first(port, "GET / HTTP/1.1\r\n\r\n"), second(port, "SSH-2.0-x\r\n");
    ASSERT_TRUE(port.until([&] { return first.is_closed() && second.is_closed(); }));
    ASSERT_EQ(port.lines.all.size(), 1u);
    EXPECT_THAT(port.lines.all.front(),
                testing::MatchesRegex("closed the connection of 127.0.0.1:[0-9]+, which begins "
                                      "with \"GET / HTTP/1.1.*none of ours; further ones.*"));
}

// A torchrun calls a daemon without --serve-c10d. It is not garbage: the operator can help, so the
// line names the option.
TEST(Endpoint, NamesTheOptionThatWouldServeC10d) {
    Port port(false);
    // The greeting of torch 2.2 and later.
    Caller client(port, std::string("\0\xce\xf7\x85\x3c", 5));
    ASSERT_TRUE(port.until([&] { return client.is_closed(); }));
    EXPECT_TRUE(port.lines.has("which is served with --serve-c10d only"));
    EXPECT_TRUE(port.clients.empty());
}

// Silent callers, and those that stop within the preface, must not stay for ever: the daemon runs
// for weeks.
TEST(Endpoint, ClosesWhoSaysNothingInTime) {
    Port port(true, 100ms);
    Caller silent(port), half(port, "DDPRUN");
    ASSERT_TRUE(port.until([&] { return silent.is_closed() && half.is_closed(); }));
    EXPECT_EQ(port.endpoint->silent(), 0u);
}

// torch 1.13 opens a second connection that never says a word. When its time is up it goes to the
// store, and not to the strangers. The first connection of that address tells the difference.
TEST(Endpoint, KeepsASilentConnectionOfWhoSpeaksC10d) {
    Port port(true, 100ms);
    Caller client(port, "\x03"), second(port);
    ASSERT_TRUE(port.until([&] { return port.clients.size() == 2; }));
    EXPECT_FALSE(second.is_closed());
    second.say("\x07");
    EXPECT_EQ(read_all(port.clients.back(), 1), "\x07");
    EXPECT_TRUE(port.lines.all.empty());
}

// A flood of silent callers. The one that has been silent longest makes room, and a node that
// speaks is served at once.
TEST(Endpoint, MakesRoomForThoseWhoSpeak) {
    // An hour: only the limit of 10 may close a caller here.
    Port port(true, 1h, 10);
    std::list<Caller> flood;
    for (int i = 0; i < 200; ++i) flood.emplace_back(port);
    Caller node(port, hello_bytes());
    ASSERT_TRUE(port.until([&] { return !port.nodes.empty(); }));
    EXPECT_LE(port.endpoint->silent(), 10u);
    ASSERT_TRUE(port.until([&] { return flood.front().is_closed(); }));
    EXPECT_TRUE(port.lines.has("longest of 10 silent connections (the limit)"));
}

// A node dies within its Hello. It is let go at once. The half of it stays readable, and an
// endpoint that waited for more would look at the same bytes for ever.
TEST(Endpoint, LetsGoOfWhoEndsInTheMiddle) {
    Port port(true, 1h);
    Caller node(port, hello_bytes().substr(0, 40));
    node.socket.shutdown(tcp::socket::shutdown_send);
    ASSERT_TRUE(port.until([&] { return node.is_closed(); }));
    EXPECT_TRUE(port.lines.has("has ended in the middle of its first message"));
    // A health check opens a connection and closes it.
    Caller probe(port);
    probe.socket.shutdown(tcp::socket::shutdown_send);
    ASSERT_TRUE(port.until([&] { return probe.is_closed(); }));
    EXPECT_EQ(port.lines.all.size(), 1u) << "a probe of the port is not worth a line";
}

// The daemon ends. The port and silent callers go; connections that were passed on belong to their
// services and stay.
TEST(Endpoint, MayBeDestroyedAtAnyTime) {
    Port port;
    Caller node(port, hello_bytes()), silent(port);
    ASSERT_TRUE(port.until([&] { return !port.nodes.empty() && port.endpoint->silent() == 1; }));
    port.endpoint.reset();
    settle(port.loop);
    EXPECT_TRUE(silent.is_closed());
    EXPECT_FALSE(node.is_closed());
    boost::system::error_code error;
    tcp::socket late(port.loop);
    late.connect(port.address, error);
    EXPECT_EQ(error, asio::error::connection_refused);
}

}  // namespace
}  // namespace ddprun::rendezvous
