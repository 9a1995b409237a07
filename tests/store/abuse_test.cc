// Peers that break rules or limits, or die, against a real store on loopback. Each one loses its
// own connection, with a log line that says why and which option helps. Another client works all
// the while and must notice nothing: one worker's bug must not stop the job of the others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <array>
#include <atomic>
#include <thread>

#include "store/client/client.h"
#include "tests/store/loopback.h"

namespace ddprun::store {
namespace {

using test::kLong;
using test::Loopback;
using test::Raw;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const std::string kGreeting = encode({Operation::validate, {}, {}, 0});

// A SET as PyTorch's client sends it, with the "/" that it puts in front of a user's key.
std::string set(const std::string& key, const std::string& value) {
    return encode({Operation::set, {"/" + key}, {value}, 0});
}

// The other client: it counts up without a pause, on a connection of its own. A wrong sum, an error
// or a stalled store shows in notices().
class Bystander {
  public:
    explicit Bystander(const Loopback& loopback)
        : client_(std::move(StoreClient::connect("127.0.0.1", loopback.port, kLong).value())),
          thread_([this] {
              for (std::int64_t expected = 1; !stop_; ++expected) {
                  const auto sum = client_.add("bystander", 1, kLong);
                  if (!sum || *sum != expected) {
                      trouble_ = sum ? "a wrong sum" : sum.error().sentence();
                      return;
                  }
              }
          }) {}
    ~Bystander() { notices(); }

    // Stops counting and makes one more call. Empty: every answer was right, and the store still
    // serves.
    std::string notices() {
        if (!thread_.joinable()) return trouble_;
        stop_ = true;
        thread_.join();
        const auto sum = client_.add("bystander", 1, kLong);
        if (trouble_.empty() && !sum) trouble_ = sum.error().sentence();
        return trouble_;
    }

  private:
    StoreClient client_;
    std::atomic<bool> stop_ = false;
    std::string trouble_;
    std::thread thread_;
};

// What the bad peer sends closes its connection, with one line that contains `said`.
void expect_closed(ServerOptions options, const std::string& bytes, const std::string& said) {
    Loopback loopback(std::move(options));
    Bystander bystander(loopback);
    Raw bad(loopback.port);
    bad.send(bytes);
    EXPECT_TRUE(bad.ends());
    EXPECT_THAT(loopback.wait_for_line("closed the connection of 127.0.0.1:"), HasSubstr(said));
    EXPECT_EQ(bystander.notices(), "");
    // One line and no more: a bad peer must not fill the log.
    EXPECT_THAT(loopback.lines(), SizeIs(1));
}

// A worker that connects and sends nonsense without end does not fill the log.
TEST(StoreAbuse, AFloodOfBadConnectionsIsSaidInAFewLines) {
    Loopback loopback;
    Bystander bystander(loopback);
    for (int i = 0; i < 60; ++i) {
        Raw bad(loopback.port);
        bad.send("nonsense");
        EXPECT_TRUE(bad.ends());
    }
    EXPECT_EQ(bystander.notices(), "");
    ASSERT_THAT(loopback.lines(), SizeIs(20));
    EXPECT_THAT(loopback.lines().back(), HasSubstr("further ones in this minute are not logged"));
}

// The limits of a test are tiny, so that a few bytes pass them.
ServerOptions with(Limits limits) {
    ServerOptions options;
    options.limits = limits;
    return options;
}

// A browser or a health check calls the store's port.
TEST(StoreAbuse, AnotherProtocol) {
    expect_closed({}, "GET / HTTP/1.1\r\n\r\n", "operation code 71 without a greeting");
}

TEST(StoreAbuse, AWrongGreeting) {
    expect_closed({}, std::string("\0\xDE\xAD\xBE\xEF", 5),
                  "no TCPStore greeting: magic 0xEFBEADDE, expected 0x3C85F7CE");
}

TEST(StoreAbuse, GarbageAfterTheGreeting) {
    expect_closed({}, kGreeting + "\xFF", "operation code 255 is unknown, the last one is 18");
}

// An ADD on a text that is no number. PyTorch's servers close the connection, too.
TEST(StoreAbuse, BadArithmetic) {
    expect_closed({}, kGreeting + set("n", "abc") + encode({Operation::add, {"/n"}, {}, 1}),
                  "ADD on key '/n', whose value is no 64-bit number");
}

// The "/" in front counts: 100 bytes become 101.
TEST(StoreAbuse, TooLongAKey) {
    expect_closed(with({.max_key = 100}), kGreeting + set(std::string(100, 'k'), "v"),
                  "SET with 101 bytes of key, over the limit of 100; --store-max-key raises it");
}

TEST(StoreAbuse, TooLongAValue) {
    expect_closed(
        with({.max_value = 100}), kGreeting + set("k", std::string(101, 'v')),
        "SET with 101 bytes of value, over the limit of 100; --store-max-value raises it");
}

// Each APPEND is below the limit; the value that they make together is not.
TEST(StoreAbuse, TooLongAValueByAppending) {
    const std::string append = encode({Operation::append, {"/k"}, {std::string(60, 'v')}, 0});
    expect_closed(with({.max_value = 100}), kGreeting + append + append,
                  "APPEND to a value of 120 bytes, over the limit of 100; --store-max-value");
}

TEST(StoreAbuse, TooManyKeysInOneRequest) {
    expect_closed(with({.max_keys = 2}),
                  kGreeting + encode({Operation::check, {"/a", "/b", "/c"}, {}, 0}),
                  "CHECK with 3 keys, over the limit of 2; --store-max-keys raises it");
}

// Each value is allowed by itself. The sum is 2 keys of 2 bytes and 2 values of 60.
TEST(StoreAbuse, TooLargeARequest) {
    expect_closed(with({.max_request = 100}),
                  kGreeting + encode({Operation::multi_set,
                                      {"/a", "/b"},
                                      {std::string(60, 'v'), std::string(60, 'v')},
                                      0}),
                  "MULTI_SET with 124 bytes of keys and values, over the limit of 100; "
                  "--store-max-request raises it");
}

// A worker stores more and more: 100 values of 1000 bytes against 64 KiB. The peer that fills the
// store is closed, and the others go on.
TEST(StoreAbuse, AFullStore) {
    std::string requests = kGreeting;
    for (int i = 0; i < 100; ++i) requests += set(std::to_string(i), std::string(1000, 'v'));
    expect_closed(with({.max_memory = 64 << 10}), requests, "--store-max-memory raises it");
}

// A peer announces a gigabyte. The announcement alone takes 1 MiB at most. The refusal comes when
// the bytes arrive and the store has no room for the whole value.
TEST(StoreAbuse, ALargeValueUnderWay) {
    std::string set_large = kGreeting + set("k", "");
    // The length 0 of the empty value is cut off, and another length takes its place.
    set_large.resize(set_large.size() - 8);
    put_u64(set_large, std::uint64_t{1} << 30);
    // 2 MiB of it arrive: more than is allocated on a peer's word.
    expect_closed(with({.max_memory = 8 << 20}), set_large + std::string(2 << 20, 'v'),
                  "SET with 1073741824 bytes of key or value while the store holds");
}

// A peer asks and never reads the answers. They must not pile up in the store, so it is closed at
// the limit: 100 answers of 8 MiB against 16 MiB.
TEST(StoreAbuse, AReaderThatDoesNotRead) {
    Loopback loopback(with({.max_queued = 16 << 20}));
    Bystander bystander(loopback);
    Raw deaf(loopback.port);
    std::string requests = kGreeting + set("large", std::string(8 << 20, 'x'));
    for (int i = 0; i < 100; ++i) requests += encode({Operation::get, {"/large"}, {}, 0});
    deaf.send(requests);
    EXPECT_THAT(loopback.wait_for_line("does not read its replies"),
                HasSubstr("over the limit of 16777216; --store-max-queued raises it"));
    EXPECT_EQ(bystander.notices(), "");
}

// A slow peer is not a bad one. The store keeps its answers and reads nothing more from it
// meanwhile. When the peer reads at last, all answers are right.
TEST(StoreAbuse, AReaderThatIsLate) {
    Loopback loopback;
    Bystander bystander(loopback);
    Raw late(loopback.port);
    const std::string value(32 << 10, 'x');
    late.send(kGreeting + set("k", value));
    constexpr int kGets = 2000;  // 64 MiB of answers, far more than the sockets hold
    // A thread of its own, so that requests keep coming while the answers wait.
    std::thread asker([&] {
        for (int i = 0; i < kGets; ++i) late.send(encode({Operation::get, {"/k"}, {}, 0}));
    });
    for (int i = 0; i < kGets; ++i) {
        const std::string reply = late.receive(8 + value.size());
        if (reply.size() != 8 + value.size()) ADD_FAILURE() << reply;
        if (reply.size() != 8 + value.size()) break;
    }
    asker.join();
    EXPECT_EQ(bystander.notices(), "");
    EXPECT_THAT(loopback.lines(), IsEmpty());
}

// The bystander is the first of three. Further callers are closed at once, and all of them together
// cause one line.
TEST(StoreAbuse, TooManyConnections) {
    Loopback loopback(with({.max_connections = 3}));
    Bystander bystander(loopback);
    const std::string ping = kGreeting + encode({Operation::ping, {}, {}, 1});
    Raw second(loopback.port), third(loopback.port);
    // The answer shows that the store has admitted this connection, so the count is certain.
    second.send(ping);
    EXPECT_THAT(second.receive(4), SizeIs(4));
    third.send(ping);
    EXPECT_THAT(third.receive(4), SizeIs(4));
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(Raw(loopback.port).ends());
    EXPECT_THAT(loopback.wait_for_line("closed the connection of 127.0.0.1:"),
                HasSubstr("it would be number 4, over the limit of 3; --store-max-connections "
                          "raises it; further ones are not logged"));
    EXPECT_THAT(loopback.lines(), SizeIs(1));
    EXPECT_EQ(bystander.notices(), "");
}

// A flood of connections must leave descriptors for nodes and workers of this process.
TEST(StoreAbuse, TooManyDescriptors) {
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    const rlimit few{64, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    Loopback loopback;  // may have 48 of the 64
    // The callers are in this process, too.
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    const std::string ping = kGreeting + encode({Operation::ping, {}, {}, 1});
    std::vector<std::unique_ptr<Raw>> flood;
    for (int i = 0; i < 48; ++i) {
        flood.push_back(std::make_unique<Raw>(loopback.port));
        flood.back()->send(ping);
        EXPECT_THAT(flood.back()->receive(4), SizeIs(4));
    }
    EXPECT_TRUE(Raw(loopback.port).ends());
    EXPECT_THAT(loopback.wait_for_line("closed the connection of 127.0.0.1:"),
                HasSubstr("it would be number 49, over the limit of 48; of the 64 descriptors of "
                          "this process (ulimit -n) a quarter is kept for nodes and workers"));
}

// Descriptors run out for a while. A caller is served once there are some again, and nobody has to
// call for that.
TEST(StoreAbuse, NoDescriptorsForAWhile) {
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    Loopback loopback;
    const UniqueFd caller(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const timeval patience{kLong.count(), 0};
    ::setsockopt(caller.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    const rlimit none{0, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    const sockaddr_in at{AF_INET, htons(loopback.port), {htonl(INADDR_LOOPBACK)}, {}};
    EXPECT_EQ(::connect(caller.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
    const std::string ping = kGreeting + encode({Operation::ping, {}, {}, 1});
    EXPECT_EQ(::send(caller.get(), ping.data(), ping.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(ping.size()));
    EXPECT_THAT(loopback.wait_for_line("the store cannot take connections now"),
                HasSubstr("Too many open files"));
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    std::array<char, 4> answer{};
    EXPECT_EQ(::recv(caller.get(), answer.data(), answer.size(), MSG_WAITALL), 4);
}

// A request that comes byte by byte costs nobody anything, and works when its last byte has come.
TEST(StoreAbuse, AHalfSentRequest) {
    Loopback loopback;
    Bystander bystander(loopback);
    Raw slow(loopback.port);
    const std::string request = kGreeting + set("slow", "value");
    for (const char byte : request) slow.send(std::string(1, byte));
    slow.send(encode({Operation::get, {"/slow"}, {}, 0}));
    // A length of 8 bytes and "value".
    EXPECT_EQ(slow.receive(13).substr(8), "value");
    EXPECT_EQ(bystander.notices(), "");
    EXPECT_THAT(loopback.lines(), IsEmpty());
}

// A peer that dies within a request meant to say more, so it gets a line. The line tells how far it
// came; an operator can see from it what the worker was doing.
TEST(StoreAbuse, APeerThatDiesInARequest) {
    Loopback loopback;
    Bystander bystander(loopback);
    {
        Raw dying(loopback.port);
        const std::string request = kGreeting + set("k", std::string(5000, 'v'));
        dying.send(request.substr(0, request.size() - 1000));
    }
    EXPECT_THAT(loopback.wait_for_line("closed the connection of 127.0.0.1:"),
                HasSubstr("it ended inside a request: SET, 4000 of 5000 bytes of its value"));
    // The same within the greeting.
    { Raw(loopback.port).send(std::string("\0\xCE", 2)); }
    EXPECT_THAT(loopback.wait_for_line("the greeting"), HasSubstr("it ended inside a request"));
    EXPECT_EQ(bystander.notices(), "");
}

// A peer that dies while it waits is a worker that was killed. Its agent reports that, so the store
// logs nothing. The SET of the key must find it gone and free the living one.
TEST(StoreAbuse, APeerThatDiesWaiting) {
    Loopback loopback;
    Bystander bystander(loopback);
    const std::string wait = kGreeting + encode({Operation::wait, {"/id"}, {}, 0}) +
                             encode({Operation::ping, {}, {}, 1});
    Raw living(loopback.port);
    living.send(wait);
    EXPECT_THAT(living.receive(4), SizeIs(4));
    for (int i = 0; i < 10; ++i) {
        Raw dying(loopback.port);
        dying.send(wait);
        // The answer to PING: the WAIT before it is registered.
        EXPECT_THAT(dying.receive(4), SizeIs(4));
    }
    Raw setter(loopback.port);
    setter.send(kGreeting + set("id", "x"));
    EXPECT_EQ(living.receive(1), std::string(1, '\0'));
    EXPECT_EQ(bystander.notices(), "");
    EXPECT_THAT(loopback.lines(), IsEmpty());
}

// torch 1.13 keeps a second connection that never says a word. Silence must not close it: a worker
// may be silent for days.
TEST(StoreAbuse, SilentPeers) {
    Loopback loopback;
    Bystander bystander(loopback);
    std::vector<std::unique_ptr<Raw>> silent;
    for (int i = 0; i < 100; ++i) silent.push_back(std::make_unique<Raw>(loopback.port));
    EXPECT_EQ(bystander.notices(), "");
    // After their silence all of them are served.
    for (const auto& peer : silent) {
        peer->send(kGreeting + encode({Operation::ping, {}, {}, 7}));
        EXPECT_EQ(peer->receive(4), nonce_reply(ConnectionId(), 7).bytes);
    }
    EXPECT_THAT(loopback.lines(), IsEmpty());
}

// The process has no free descriptor. The store says so once and tries again. Callers wait in the
// kernel's backlog meanwhile and lose nothing.
TEST(StoreAbuse, AShortageOfDescriptors) {
    Loopback loopback;
    // The limit leaves room for one more descriptor: the caller's socket. The store cannot accept
    // it.
    const int lowest_free = ::dup(0);
    ::close(lowest_free);
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    const rlimit room_for_one{static_cast<rlim_t>(lowest_free) + 1, before.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &room_for_one);
    Raw client(loopback.port);
    const std::string line = loopback.wait_for_line("cannot take connections now");
    ::setrlimit(RLIMIT_NOFILE, &before);
    EXPECT_THAT(line, HasSubstr("ulimit -n"));
    client.send(kGreeting + encode({Operation::ping, {}, {}, 7}));
    EXPECT_EQ(client.receive(4), nonce_reply(ConnectionId(), 7).bytes);
    EXPECT_THAT(loopback.lines(), SizeIs(1));
}

}  // namespace
}  // namespace ddprun::store
