// Peers that break rules or limits, or die: each loses its own connection, with a line that says
// why, while another client, which asks all the while, notices nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <thread>

#include "rendezvous/store/client.h"
#include "tests/rendezvous/store/loopback.h"

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

std::string set(const std::string& key, const std::string& value) {
    return encode({Operation::set, {"/" + key}, {value}, 0});
}

// Counts up without a pause, on a connection of its own, until it is asked what it saw.
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

    // Empty when all was well, and it was served since the call too.
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

// What the bad peer sends closes its connection, with a line that has all of `said`.
void expect_closed(ServerOptions options, const std::string& bytes, const std::string& said) {
    Loopback loopback(std::move(options));
    Bystander bystander(loopback);
    Raw bad(loopback.port);
    bad.send(bytes);
    EXPECT_TRUE(bad.ends());
    EXPECT_THAT(loopback.wait_for_line("closed the connection of 127.0.0.1:"), HasSubstr(said));
    EXPECT_EQ(bystander.notices(), "");
    EXPECT_THAT(loopback.lines(), SizeIs(1));
}

ServerOptions with(Limits limits) {
    ServerOptions options;
    options.limits = limits;
    return options;
}

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

TEST(StoreAbuse, BadArithmetic) {
    expect_closed({}, kGreeting + set("n", "abc") + encode({Operation::add, {"/n"}, {}, 1}),
                  "ADD on key '/n', whose value is no 64-bit number");
}

TEST(StoreAbuse, TooLongAKey) {
    expect_closed(with({.max_key = 100}), kGreeting + set(std::string(100, 'k'), "v"),
                  "SET with 101 bytes of key, over the limit of 100; --store-max-key raises it");
}

TEST(StoreAbuse, TooLongAValue) {
    expect_closed(
        with({.max_value = 100}), kGreeting + set("k", std::string(101, 'v')),
        "SET with 101 bytes of value, over the limit of 100; --store-max-value raises it");
}

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

TEST(StoreAbuse, TooLargeARequest) {
    expect_closed(with({.max_request = 100}),
                  kGreeting + encode({Operation::multi_set,
                                      {"/a", "/b"},
                                      {std::string(60, 'v'), std::string(60, 'v')},
                                      0}),
                  "MULTI_SET with 124 bytes of keys and values, over the limit of 100; "
                  "--store-max-request raises it");
}

// Whoever fills the store goes; what it stored before stays.
TEST(StoreAbuse, AFullStore) {
    std::string requests = kGreeting;
    for (int i = 0; i < 100; ++i) requests += set(std::to_string(i), std::string(1000, 'v'));
    expect_closed(with({.max_memory = 64 << 10}), requests, "--store-max-memory raises it");
}

// A promise of a gigabyte takes nothing; when it comes true it does, and no further than the limit.
TEST(StoreAbuse, ALargeValueUnderWay) {
    std::string set_large = kGreeting + set("k", "");
    set_large.resize(set_large.size() - 8);
    put_u64(set_large, std::uint64_t{1} << 30);
    expect_closed(with({.max_memory = 8 << 20}), set_large + std::string(2 << 20, 'v'),
                  "SET with 1073741824 bytes of key or value while the store holds");
}

// Who asks and never takes the answers is closed at the limit.
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

// Nothing more is read from it until it has taken its answers: then all of them are right.
TEST(StoreAbuse, AReaderThatIsLate) {
    Loopback loopback;
    Bystander bystander(loopback);
    Raw late(loopback.port);
    const std::string value(32 << 10, 'x');
    late.send(kGreeting + set("k", value));
    constexpr int kGets = 2000;  // 64 MiB, far more than sockets hold
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

TEST(StoreAbuse, TooManyConnections) {
    Loopback loopback(with({.max_connections = 3}));
    Bystander bystander(loopback);
    const std::string ping = kGreeting + encode({Operation::ping, {}, {}, 1});
    Raw second(loopback.port), third(loopback.port);
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

// Half a request costs nobody anything, and goes on when the rest comes.
TEST(StoreAbuse, AHalfSentRequest) {
    Loopback loopback;
    Bystander bystander(loopback);
    Raw slow(loopback.port);
    const std::string request = kGreeting + set("slow", "value");
    for (const char byte : request) slow.send(std::string(1, byte));
    slow.send(encode({Operation::get, {"/slow"}, {}, 0}));
    EXPECT_EQ(slow.receive(13).substr(8), "value");
    EXPECT_EQ(bystander.notices(), "");
    EXPECT_THAT(loopback.lines(), IsEmpty());
}

// A peer that dies within a request is worth a line: it meant to say more.
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
    { Raw(loopback.port).send(std::string("\0\xCE", 2)); }
    EXPECT_THAT(loopback.wait_for_line("the greeting"), HasSubstr("it ended inside a request"));
    EXPECT_EQ(bystander.notices(), "");
}

// One that dies waiting is a worker that was killed, and needs no line: its agent has said so. The
// key it waited for finds it gone.
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
        EXPECT_THAT(dying.receive(4), SizeIs(4));  // the wait is known to the server
    }
    Raw setter(loopback.port);
    setter.send(kGreeting + set("id", "x"));
    EXPECT_EQ(living.receive(1), std::string(1, '\0'));
    EXPECT_EQ(bystander.notices(), "");
    EXPECT_THAT(loopback.lines(), IsEmpty());
}

// torch 1.13 keeps a second connection that never says a word; it is never closed for that.
TEST(StoreAbuse, SilentPeers) {
    Loopback loopback;
    Bystander bystander(loopback);
    std::vector<std::unique_ptr<Raw>> silent;
    for (int i = 0; i < 100; ++i) silent.push_back(std::make_unique<Raw>(loopback.port));
    EXPECT_EQ(bystander.notices(), "");
    for (const auto& peer : silent) {
        peer->send(kGreeting + encode({Operation::ping, {}, {}, 7}));
        EXPECT_EQ(peer->receive(4), nonce_reply(ConnectionId(), 7).bytes);
    }
    EXPECT_THAT(loopback.lines(), IsEmpty());
}

// Out of file descriptors: said once, and those who waited in the backlog are served when there are
// some again.
TEST(StoreAbuse, AShortageOfDescriptors) {
    Loopback loopback;
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
