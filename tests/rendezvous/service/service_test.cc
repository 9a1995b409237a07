#include "rendezvous/service/service.h"

#include <gmock/gmock.h>

#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>

#include "base/system/boot_clock.h"
#include "rendezvous/ledger/ledger_memory.h"
#include "rendezvous/link/client.h"
#include "rendezvous/wire/frame.h"
#include "rendezvous/wire/wire.h"
#include "tests/rendezvous/examples.h"
#include "tests/support/loop.h"

namespace ddprun::rendezvous {
namespace {

using testing::HasSubstr;

// The service of a job of `nodes`, on a port of its own, with the real machine and a ledger in
// memory.
struct Leader {
    Leader(asio::io_context& loop, int nodes) : ledger(loop) {
        MachineConfig config;
        config.run_id = "8812";
        config.self = {"gpu00", Incarnation{1000}};
        config.version = "0.1.0";
        config.limits.min_nodes = config.limits.max_nodes = nodes;
        config.seed = 1;
        auto acceptor = listener(loop);
        port = acceptor.local_endpoint().port();
        service.emplace(loop, std::move(acceptor), config, ledger, lines.log(),
                        [this](const Ending& with) {
                            ending = with;
                            service.reset();  // allowed within its own callback
                        });
        service->start();
    }
    LedgerMemory ledger;
    Lines lines;
    std::uint16_t port = 0;
    std::optional<Service> service;
    std::optional<Ending> ending;
};

// What a node says by itself: Hello, Join, and a Beat that echoes each of the first Acks.
struct Script {
    explicit Script(const std::string& name)
        : id{name, Incarnation{std::hash<std::string>{}(name)}} {}

    Hello hello(const std::string& run_id = "8812") const { return {run_id, id, "0.1.0", 0}; }
    std::optional<ToLeader> answer(const ToNode& message) {
        got.push_back(message);
        if (std::holds_alternative<Welcome>(message)) {
            beat.number = 1;
            beat.echo = 0;
            return Join{example_offer(2), beat};
        }
        if (const auto* ack = std::get_if<Ack>(&message); ack && beat.number < 20) {
            ++beat.number;
            beat.echo = ack->number;
            return beat;
        }
        return {};
    }
    template <class T>
    const T* find() const {
        for (const ToNode& message : got)
            if (const T* one = std::get_if<T>(&message)) return one;
        return nullptr;
    }
    NodeId id;
    Beat beat;
    std::vector<ToNode> got;
};

struct RemoteNode : Script {
    RemoteNode(asio::io_context& loop, const std::string& name)
        : Script(name),
          client(loop, [](const Note&) {},
                 {[](const std::string&) {},
                  [this](const ToNode& message) {
                      if (auto reply = answer(message)) client.send(*reply);
                  },
                  [this](const Error& error) { lost = error; }}) {}
    void call(std::uint16_t port, const std::string& run_id = "8812") {
        client.connect({{"127.0.0.1", port}}, hello(run_id), kNever);
    }
    std::optional<Error> lost;
    Client client;
};

struct LocalNode : Script {
    LocalNode(Service& service, const std::string& name) : Script(name) {
        session = service.open_local([this, &service](const ToNode& message) {
            if (auto reply = answer(message)) service.local_send(session, *reply);
        });
        service.local_send(session, hello());
    }
    Session session;
};

// A socket that says whatever the test wants, and what it is told until the end.
struct Stranger {
    Stranger(asio::io_context& loop, std::uint16_t port) : socket(loop) {
        socket.connect({asio::ip::address_v4::loopback(), port});
        read();
    }
    void read() {
        socket.async_read_some(asio::buffer(piece),
                               [this](boost::system::error_code error, std::size_t size) {
                                   told.append(piece, size);
                                   if (error)
                                       ended = true;
                                   else
                                       read();
                               });
    }
    tcp::socket socket;
    char piece[4096];
    std::string told;
    bool ended = false;
};

// The leader's own node and one over the wire meet, and both are told their places in one world.
TEST(Service, TwoNodesMeet) {
    asio::io_context loop;
    Leader leader(loop, 2);
    LocalNode first(*leader.service, "gpu00");
    EXPECT_TRUE(first.got.empty()) << "nothing is delivered from within a call";
    RemoteNode second(loop, "gpu01");
    second.call(leader.port);
    ASSERT_TRUE(run_until(loop, [&] { return first.find<Assigned>() && second.find<Assigned>(); }))
        << leader.service->snapshot().waiting_for;
    const NodePlace& one = first.find<Assigned>()->place;
    const NodePlace& other = second.find<Assigned>()->place;
    EXPECT_EQ(one.world_size, 4);
    EXPECT_EQ(other.world_size, 4);
    EXPECT_EQ(one.rank_offset, 0);
    EXPECT_EQ(other.rank_offset, 2);
}

// Both say that they are complete: everyone is told the end, then the service is closed, once all has been
// flushed.
TEST(Service, TellsTheEndAndCloses) {
    asio::io_context loop;
    Leader leader(loop, 2);
    LocalNode first(*leader.service, "gpu00");
    RemoteNode second(loop, "gpu01");
    second.call(leader.port);
    ASSERT_TRUE(run_until(loop, [&] { return first.find<Assigned>() && second.find<Assigned>(); }));
    const auto complete = [](Script& node) {
        ++node.beat.number;
        node.beat.running = node.find<Assigned>()->place.generation;
        node.beat.complete = true;
        return node.beat;
    };
    leader.service->local_send(first.session, complete(first));
    second.client.send(complete(second));
    ASSERT_TRUE(run_until(loop, [&] { return second.find<Finished>() && leader.ending; }));
    ASSERT_TRUE(first.find<Finished>());
    EXPECT_EQ(leader.ending->verdict, Verdict::succeeded);
    EXPECT_FALSE(leader.service.has_value());
}

TEST(Service, RefusesAnotherRun) {
    asio::io_context loop;
    Leader leader(loop, 2);
    RemoteNode node(loop, "gpu01");
    node.call(leader.port, "7");
    ASSERT_TRUE(run_until(loop, [&] { return node.find<Refused>() && node.lost; }));
    EXPECT_THAT(node.find<Refused>()->sentence, HasSubstr("8812"));
}

// Each kind of rubbish closes its own connection with a line that names the peer, gets no byte of
// answer, and harms nobody: a node that calls afterwards is welcome.
TEST(Service, ClosesOnGarbage) {
    asio::io_context loop;
    Leader leader(loop, 2);
    const std::string preface(kPreface);
    for (const std::string& garbage :
         {std::string("GET / HTTP/1.1\r\n\r\n"), preface + std::string("\x7f\xff\xff\xff", 4),
          preface + frame("\xff\xff\xff"), preface + frame("")}) {
        Stranger stranger(loop, leader.port);
        asio::write(stranger.socket, asio::buffer(garbage));
        leader.lines.all.clear();
        ASSERT_TRUE(run_until(loop, [&] { return stranger.ended; }));
        EXPECT_EQ(stranger.told, "");
        const std::string peer = std::to_string(stranger.socket.local_endpoint().port());
        EXPECT_TRUE(leader.lines.has("127.0.0.1:" + peer))
            << testing::PrintToString(leader.lines.all);
    }
    RemoteNode node(loop, "gpu01");
    node.call(leader.port);
    EXPECT_TRUE(run_until(loop, [&] { return node.find<Welcome>(); }));
}

// Connections that end at every byte of what a node says first.
TEST(Service, SurvivesConnectionsThatAreCut) {
    asio::io_context loop;
    Leader leader(loop, 2);
    Script script("gpu01");
    const std::string bytes = std::string(kPreface) + frame(encode(ToLeader(script.hello()))) +
                              frame(encode(ToLeader(Join{example_offer(), Beat{}})));
    for (std::size_t size = 0; size <= bytes.size(); ++size) {
        tcp::socket socket(loop);
        socket.connect({asio::ip::address_v4::loopback(), leader.port});
        asio::write(socket, asio::buffer(bytes.data(), size));
        if (size % 2) socket.set_option(asio::socket_base::linger(true, 0));  // a reset
        socket.close();
        settle(loop);
    }
    ASSERT_TRUE(run_until(loop, [&] { return leader.service->snapshot().connected.empty(); }));
    RemoteNode node(loop, "gpu01");
    node.call(leader.port);
    EXPECT_TRUE(run_until(loop, [&] { return node.find<Welcome>(); }));
}

// A connection that says nothing is closed after 10 s; one that said Hello stays.
TEST(Service, ClosesASilentConnection) {
    asio::io_context loop;
    Leader leader(loop, 2);
    Stranger silent(loop, leader.port);
    asio::write(silent.socket, asio::buffer(std::string(kPreface)));
    RemoteNode node(loop, "gpu01");
    node.call(leader.port);
    ASSERT_TRUE(run_until(loop, [&] { return silent.ended; }));
    EXPECT_FALSE(node.lost);
    EXPECT_TRUE(leader.lines.has("has sent no whole first message in time"));
}

// A ledger that cannot be read at first: said once, tried again, and the job begins.
TEST(Service, ReadsTheLedgerAgain) {
    struct Failing final : Ledger {
        explicit Failing(asio::io_context& loop) : loop(loop), good(loop) {}
        void read(EntryNumber from, ReadDone done) override {
            if (++reads > 1) return good.read(from, done);
            asio::post(loop, [done] { done(Error(ErrorCode::unavailable, "the disk is away")); });
        }
        void create(LedgerEntry entry, CreateDone done) override { good.create(entry, done); }
        std::string name() const override { return "failing"; }
        asio::io_context& loop;
        LedgerMemory good;
        int reads = 0;
    };
    asio::io_context loop;
    Failing ledger(loop);
    Lines lines;
    MachineConfig config;
    config.run_id = "8812";
    config.self = {"gpu00", Incarnation{1000}};
    config.version = "0.1.0";
    Service service(loop, std::nullopt, config, ledger, lines.log(), [](const Ending&) {});
    service.start();
    LocalNode node(service, "gpu00");
    ASSERT_TRUE(run_until(loop, [&] { return node.find<Assigned>(); }));
    EXPECT_GE(ledger.reads, 2);
    EXPECT_TRUE(lines.has("cannot read the ledger: the disk is away"));
}

// Destroyed in the middle of everything: no callback comes, nothing is left on the loop.
TEST(Service, MayBeDestroyedAtAnyTime) {
    for (int steps = 0; steps < 40; ++steps) {
        asio::io_context loop;
        RemoteNode second(loop, "gpu01");
        {
            Leader leader(loop, 2);
            LocalNode first(*leader.service, "gpu00");
            second.call(leader.port);
            for (int i = 0; i < steps; ++i) {
                loop.restart();
                loop.poll_one();
            }
            leader.service.reset();
            settle(loop);
        }
        second.client.close();
        settle(loop);
    }
}

// A dormant service sends callers away and says what it is; told to lead, it takes them.
TEST(Service, IsDormantUntilItIsToldToLead) {
    asio::io_context loop;
    LedgerMemory ledger(loop);
    MachineConfig config;
    config.run_id = "8812";
    config.self = {"gpu00", Incarnation{1000}};
    config.version = "0.1.0";
    config.limits.min_nodes = config.limits.max_nodes = 2;
    Lines lines;
    auto acceptor = listener(loop);
    const std::uint16_t port = acceptor.local_endpoint().port();
    Service service(loop, std::move(acceptor), config, ledger, lines.log(), [](const Ending&) {});
    service.listen();
    const auto answer = [&](const ToLeader& opening) {
        std::optional<ToNode> got;
        Client client(loop, lines.log(),
                      {[](const std::string&) {}, [&](const ToNode& message) { got = message; },
                       [](const Error&) {}});
        client.connect({{"127.0.0.1", port}}, opening, boot_now() + std::chrono::seconds{5}, true);
        EXPECT_TRUE(run_until(loop, [&] { return got.has_value(); }));
        return got.value_or(Parked{});
    };
    const Hello hello{"8812", {"gpu01", Incarnation{7}}, "0.1.0", 0};
    EXPECT_TRUE(std::holds_alternative<Elsewhere>(answer(hello)));
    EXPECT_FALSE(std::get<Standing>(answer(Inquire{hello})).leads);
    service.lead({config.self, "127.0.0.1", port});
    EXPECT_TRUE(std::holds_alternative<Welcome>(answer(hello)));
    EXPECT_TRUE(std::get<Standing>(answer(Inquire{hello})).leads);
}

}  // namespace
}  // namespace ddprun::rendezvous
