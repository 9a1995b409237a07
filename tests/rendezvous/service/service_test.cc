// The service over real sockets: the real machine, a ledger in memory, and nodes on the same loop.
// One node is the leader's own, without a socket; the others call over loopback. Nobody needs a
// secret here (gate_test.cc has those that do).
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

// A leading service for a job of `nodes`, on a port of its own. Everything else is default: a lease
// of 10 s, no secret. `ending` is set when the service has closed the job.
struct Leader {
    Leader(asio::io_context& loop, int nodes) : ledger(loop) {
        MachineConfig config;
        // Run id and version must be those of a node's Hello.
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
                            // The owner may destroy the service within its own callback.
                            service.reset();
                        });
        service->start();
    }
    LedgerMemory ledger;
    Lines lines;
    std::uint16_t port = 0;
    std::optional<Service> service;
    std::optional<Ending> ending;
};

// What a node says by itself: Hello, Join, and a Beat that echoes each of the first Acks. It never
// runs anything; that is enough to be a candidate for a generation.
struct Script {
    // Another name is another incarnation.
    explicit Script(const std::string& name)
        : id{name, Incarnation{std::hash<std::string>{}(name)}} {}

    Hello hello(const std::string& run_id = "8812") const { return {run_id, id, "0.1.0", 0}; }
    // The reply to one message, if there is one. A generation needs an echoed Ack from each node.
    // 20 Beats are more than enough, and the exchange must end: each Beat may cause an Ack.
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
    // The first message of this type, or null.
    const T* find() const {
        for (const ToNode& message : got)
            if (const T* one = std::get_if<T>(&message)) return one;
        return nullptr;
    }
    NodeId id;
    Beat beat;
    std::vector<ToNode> got;
};

// A node over a socket, with the client that real nodes use. `lost` is why its connection ended.
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

// The leader's own node. Its messages are posted, in order.
struct LocalNode : Script {
    LocalNode(Service& service, const std::string& name) : Script(name) {
        session = service.open_local([this, &service](const ToNode& message) {
            if (auto reply = answer(message)) service.local_send(session, *reply);
        });
        service.local_send(session, hello());
    }
    Session session;
};

// A socket that sends what the test wants. `told` is what it received; `ended`: the service has
// closed the connection.
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

// The whole way of a message: socket, gate, machine, ledger, and back. The leader's own node and
// one over the wire get their places in one world of 4 workers.
TEST(Service, TwoNodesMeet) {
    asio::io_context loop;
    Leader leader(loop, 2);
    LocalNode first(*leader.service, "gpu00");
    EXPECT_TRUE(first.got.empty()) << "nothing is delivered from within a call";
    RemoteNode second(loop, "gpu01");
    second.call(leader.port);
    // If they do not meet, the service says whom it waits for.
    ASSERT_TRUE(run_until(loop, [&] { return first.find<Assigned>() && second.find<Assigned>(); }))
        << leader.service->status().waiting_for;
    const NodePlace& one = first.find<Assigned>()->place;
    const NodePlace& other = second.find<Assigned>()->place;
    EXPECT_EQ(one.world_size, 4);
    EXPECT_EQ(other.world_size, 4);
    EXPECT_EQ(one.rank_offset, 0);
    EXPECT_EQ(other.rank_offset, 2);
}

// The workers of both nodes are complete. Every node must hear the end before the service closes. A
// node that does not would wait for a leader, or exit with another code.
TEST(Service, TellsTheEndAndCloses) {
    asio::io_context loop;
    Leader leader(loop, 2);
    LocalNode first(*leader.service, "gpu00");
    RemoteNode second(loop, "gpu01");
    second.call(leader.port);
    // Only a node that has its place may be complete.
    ASSERT_TRUE(run_until(loop, [&] { return first.find<Assigned>() && second.find<Assigned>(); }));
    // The Beat of a node whose workers have all exited with 0.
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

// A node calls the port of another job. It is refused with the name of the run that it has reached.
TEST(Service, RefusesAnotherRun) {
    asio::io_context loop;
    Leader leader(loop, 2);
    RemoteNode node(loop, "gpu01");
    node.call(leader.port, "7");
    ASSERT_TRUE(run_until(loop, [&] { return node.find<Refused>() && node.lost; }));
    EXPECT_THAT(node.find<Refused>()->sentence, HasSubstr("8812"));
}

// Each kind of garbage closes its own connection, with a line that names the peer, and gets no byte
// of an answer. It harms nobody: a node that calls afterwards is welcome.
TEST(Service, ClosesOnGarbage) {
    asio::io_context loop;
    Leader leader(loop, 2);
    const std::string preface(kPreface);
    // Another protocol, a frame of 2 GiB, a body that is no message, an empty frame.
    for (const std::string& garbage :
         {std::string("GET / HTTP/1.1\r\n\r\n"), preface + std::string("\x7f\xff\xff\xff", 4),
          preface + frame("\xff\xff\xff"), preface + frame("")}) {
        Stranger stranger(loop, leader.port);
        asio::write(stranger.socket, asio::buffer(garbage));
        // Only the line of this stranger counts.
        leader.lines.all.clear();
        ASSERT_TRUE(run_until(loop, [&] { return stranger.ended; }));
        EXPECT_EQ(stranger.told, "");
        const std::string peer = std::to_string(stranger.socket.local_endpoint().port());
        EXPECT_TRUE(leader.lines.has("127.0.0.1:" + peer))
            << testing::PrintToString(leader.lines.all);
    }
    // The service still works.
    RemoteNode node(loop, "gpu01");
    node.call(leader.port);
    EXPECT_TRUE(run_until(loop, [&] { return node.find<Welcome>(); }));
}

// A node dies while it says its first words. The connection ends after each possible number of
// bytes, every second time by a reset. None may be left over in the service.
TEST(Service, SurvivesConnectionsThatAreCut) {
    asio::io_context loop;
    Leader leader(loop, 2);
    Script script("gpu01");
    // The preface, a Hello and a Join.
    const std::string bytes = std::string(kPreface) + frame(encode(ToLeader(script.hello()))) +
                              frame(encode(ToLeader(Join{example_offer(), Beat{}})));
    for (std::size_t size = 0; size <= bytes.size(); ++size) {
        tcp::socket socket(loop);
        socket.connect({asio::ip::address_v4::loopback(), leader.port});
        asio::write(socket, asio::buffer(bytes.data(), size));
        // linger 0: close() sends a reset.
        if (size % 2) socket.set_option(asio::socket_base::linger(true, 0));
        socket.close();
        settle(loop);
    }
    ASSERT_TRUE(run_until(loop, [&] { return leader.service->snapshot().connected.empty(); }));
    RemoteNode node(loop, "gpu01");
    node.call(leader.port);
    EXPECT_TRUE(run_until(loop, [&] { return node.find<Welcome>(); }));
}

// A connection that says nothing is closed after 10 s; one that has said Hello stays. Silent ones
// would otherwise fill the gate.
TEST(Service, ClosesASilentConnection) {
    asio::io_context loop;
    Leader leader(loop, 2);
    Stranger silent(loop, leader.port);
    // The preface alone is no message.
    asio::write(silent.socket, asio::buffer(std::string(kPreface)));
    RemoteNode node(loop, "gpu01");
    node.call(leader.port);
    // 10 s, of the 20 that run_until() waits.
    ASSERT_TRUE(run_until(loop, [&] { return silent.ended; }));
    EXPECT_FALSE(node.lost);
    EXPECT_TRUE(leader.lines.has("has sent no whole first message in time"));
}

// The ledger cannot be read at first, as on a disk that is being mounted. The service says so and
// tries again each second, and the job begins.
TEST(Service, ReadsTheLedgerAgain) {
    // The first read fails, the next ones go to a good ledger.
    struct Failing final : Ledger {
        explicit Failing(asio::io_context& loop) : loop(loop), good(loop) {}
        void read(EntryNumber from, ReadDone done) override {
            if (++reads > 1) return good.read(from, done);
            asio::post(loop, [done] { done(Error(ErrorCode::unavailable, "the disk is away")); });
        }
        void create(LedgerEntry entry, CreateDone done) override { good.create(entry, done); }
        void look(EntryNumber from, LookDone done) override { good.look(from, done); }
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
    config.self = Script("gpu00").id;
    config.version = "0.1.0";
    // No listener: a job of one node.
    Service service(loop, std::nullopt, config, ledger, lines.log(), [](const Ending&) {});
    service.start();
    LocalNode node(service, "gpu00");
    ASSERT_TRUE(run_until(loop, [&] { return node.find<Assigned>(); }));
    EXPECT_GE(ledger.reads, 2);
    EXPECT_TRUE(lines.has("cannot read the ledger: the disk is away"));
}

// The service goes in the middle of the first exchange, after 0 to 39 steps of the loop. No
// callback comes and nothing is left on the loop. Sanitizers see a handler that outlives its
// service.
TEST(Service, MayBeDestroyedAtAnyTime) {
    for (int steps = 0; steps < 40; ++steps) {
        asio::io_context loop;
        // Outlives the leader, as a node on another host does.
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

// The service of a node that does not lead sends callers away, and says so to other leaders. Once
// it leads it takes them. If it took nodes before, they would wait for a generation that never
// begins.
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
    // What the service answers to the first message of a new connection. 5 s, called once: an
    // answer comes in a round trip.
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
    // The program has handed in nobody who serves operators.
    for (const bool this_node : {false, true})
        EXPECT_EQ(answer(Operate{hello, 0, this_node}),
                  ToNode(Refused{"nobody serves operators here"}));
}

}  // namespace
}  // namespace ddprun::rendezvous
