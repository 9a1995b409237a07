// A node's side of the agent link over real sockets, against peers that the test plays: a
// rendezvous, a stranger, nobody. No secrets here; gate_test.cc has the handshake.
#include "rendezvous/link/client.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <boost/asio/write.hpp>

#include "base/system/boot_clock.h"
#include "rendezvous/link/link.h"
#include "rendezvous/wire/wire.h"
#include "tests/rendezvous/examples.h"
#include "tests/support/loop.h"

namespace ddprun::rendezvous {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A deadline so long from now, by the clock that the client uses.
Time in(std::chrono::milliseconds time) { return boot_now() + time; }

// A client that writes down everything it reports.
struct Node {
    explicit Node(asio::io_context& loop) : client(loop, lines.log(), callbacks()) {}

    Client::Callbacks callbacks() {
        return {[this](const std::string& address) { up.push_back(address); },
                [this](const ToNode& message) { messages.push_back(message); },
                [this](const Error& error) { lost.push_back(error); }};
    }
    // Calls these ports on loopback in turn, with a Hello as the opening.
    void connect(std::vector<std::uint16_t> ports, Time deadline) {
        std::vector<CallTarget> candidates;
        for (std::uint16_t port : ports) candidates.push_back({"127.0.0.1", port});
        client.connect(candidates, examples_to_leader()[0], deadline);
    }

    Lines lines;
    std::vector<std::string> up;
    std::vector<ToNode> messages;
    std::vector<Error> lost;
    Client client;
};

// The other side. It answers each message with `answer`, or speaks `raw` instead of our protocol.
// It serves any number of connections, one link at a time.
struct Peer {
    explicit Peer(asio::io_context& loop) : acceptor(listener(loop)) { accept(); }

    std::uint16_t port() { return acceptor.local_endpoint().port(); }
    void accept() {
        acceptor.async_accept([this](boost::system::error_code error, tcp::socket socket) {
            if (error) return;
            ++accepted;
            // Kept open: an end would be another story than a stranger that stays.
            if (!raw.empty()) {
                asio::write(socket, asio::buffer(raw));
                keep.push_back(std::make_shared<tcp::socket>(std::move(socket)));
            } else {
                speak(std::move(socket));
            }
            accept();
        });
    }
    void speak(tcp::socket socket) {
        Link::Handlers handlers;
        handlers.on_frame = [this](std::string_view body) {
            got.push_back(decode_to_leader(body).value());
            if (answer) link->send(encode(*answer));
        };
        handlers.on_end = [this](const Error&) { ended = true; };
        link = std::make_shared<Link>(std::move(socket), kNodeFrameLimit, handlers);
        // No time limit for the first message.
        link->start(Duration{0});
    }
    // A link keeps itself alive, and its handlers refer to this object.
    ~Peer() {
        if (link) link->drop();
    }

    tcp::acceptor acceptor;
    // Sent instead of our protocol.
    std::string raw;
    std::optional<ToNode> answer = examples_to_node()[0];
    std::vector<std::shared_ptr<tcp::socket>> keep;
    std::shared_ptr<Link> link;
    std::vector<ToLeader> got;
    int accepted = 0;
    bool ended = false;
};

// The opening goes out first, and its answer brings the link up. Then messages pass in both
// directions, in order.
TEST(Client, MeetsThePeerAndTalks) {
    asio::io_context loop;
    Peer peer(loop);
    Node node(loop);
    node.connect({peer.port()}, kNever);
    // Before that a message is dropped, and the keeper gets no socket.
    EXPECT_EQ(node.client.native_handle(), -1);
    node.client.send(ToLeader(Leave{"dropped, for it is not up"}));
    ASSERT_TRUE(run_until(loop, [&] { return !node.messages.empty(); }));
    EXPECT_THAT(node.up, ElementsAre("127.0.0.1"));
    EXPECT_GE(node.client.native_handle(), 0);
    for (const ToLeader& message : examples_to_leader()) node.client.send(message);
    ASSERT_TRUE(
        run_until(loop, [&] { return peer.got.size() == examples_to_leader().size() + 1; }));
    // The opening.
    peer.got.erase(peer.got.begin());
    EXPECT_EQ(peer.got, examples_to_leader());
    EXPECT_TRUE(node.lost.empty());
}

// A small buffer waits for what comes (link.h). Messages that fill it exactly, just do not, or are
// much larger come whole and in order, and then the peer's end.
TEST(Client, TakesMessagesOfAllSizes) {
    asio::io_context loop;
    Peer peer(loop);
    Node node(loop);
    node.connect({peer.port()}, kNever);
    ASSERT_TRUE(run_until(loop, [&] { return !node.messages.empty(); }));
    std::vector<std::size_t> sizes{4000};
    for (std::size_t size = 200; size < 270; ++size) sizes.push_back(size);
    for (const std::size_t size : sizes) {
        node.messages.clear();
        const std::vector<ToNode> sent{Refused{std::string(size, 'a')}, Refused{"b"}};
        // One after the other, so that each ends where a read ends; then both at once.
        for (const ToNode& message : sent) {
            peer.link->send(encode(message));
            ASSERT_TRUE(run_until(loop, [&] { return !node.messages.empty(); })) << size;
            EXPECT_EQ(std::exchange(node.messages, {}), std::vector{message}) << size;
        }
        for (const ToNode& message : sent) peer.link->send(encode(message));
        ASSERT_TRUE(run_until(loop, [&] { return node.messages.size() == 2; })) << size;
        EXPECT_EQ(node.messages, sent) << size;
    }
    peer.link->drop();
    ASSERT_TRUE(run_until(loop, [&] { return !node.lost.empty(); }));
    EXPECT_THAT(node.lost.front().sentence(), HasSubstr("has ended the connection"));
}

// srun starts the nodes in any order, so the leader may not listen yet. The client tries again and
// meets the leader as soon as it is there.
TEST(Client, WaitsForAPeerThatIsNotUpYet) {
    asio::io_context loop;
    tcp::acceptor reserved(loop, tcp::v4());
    // A port that is bound and not listening refuses each call.
    reserved.bind({asio::ip::address_v4::loopback(), 0});
    Node node(loop);
    node.connect({reserved.local_endpoint().port()}, kNever);
    int rounds = 0;
    // Each round is a step of the loop; 20 are several refused tries.
    run_until(loop, [&] { return ++rounds > 20; });
    EXPECT_TRUE(node.up.empty() && node.lost.empty());
    reserved.listen();
    // The leader comes and answers the opening.
    bool accepted = false;
    std::shared_ptr<Link> link;
    reserved.async_accept([&](boost::system::error_code, tcp::socket socket) {
        accepted = true;
        link = std::make_shared<Link>(
            std::move(socket), kNodeFrameLimit,
            Link::Handlers{[&](std::string_view) { link->send(encode(examples_to_node()[0])); },
                           [](const Error&) {}});
        link->start(Duration{0});
    });
    EXPECT_TRUE(run_until(loop, [&] { return accepted && !node.up.empty(); }));
    link->drop();
}

// Nobody ever listens. The user must learn what the last attempt met, since it tells a wrong port
// from a firewall.
TEST(Client, SaysWhatItMetWhenTheDeadlinePasses) {
    asio::io_context loop;
    tcp::acceptor refusing(loop, tcp::v4());
    refusing.bind({asio::ip::address_v4::loopback(), 0});
    Node node(loop);
    node.connect({refusing.local_endpoint().port()}, in(std::chrono::milliseconds{100}));
    ASSERT_TRUE(run_until(loop, [&] { return !node.lost.empty(); }));
    EXPECT_EQ(node.lost[0].code(), ErrorCode::timed_out);
    EXPECT_THAT(node.lost[0].sentence(), HasSubstr("Connection refused"));
}

// A deadline in the past and nobody to call. The answer comes all the same, and never from within
// the call: the agent would be entered twice.
TEST(Client, AnswersAnImpossibleCall) {
    asio::io_context loop;
    Node node(loop);
    node.client.connect({}, examples_to_leader()[0], in(std::chrono::milliseconds{-1}));
    EXPECT_TRUE(node.lost.empty());
    ASSERT_TRUE(run_until(loop, [&] { return !node.lost.empty(); }));
    EXPECT_THAT(node.lost[0].sentence(), HasSubstr("no candidate"));
}

// Another program has the first port, takes the call and speaks its own protocol. The client passes
// it over, and the second candidate is ours.
TEST(Client, PassesOverAStranger) {
    asio::io_context loop;
    Peer stranger(loop), peer(loop);
    stranger.raw = "SSH-2.0-OpenSSH_9.2\r\n";
    Node node(loop);
    node.connect({stranger.port(), peer.port()}, kNever);
    ASSERT_TRUE(run_until(loop, [&] { return !node.up.empty(); }));
    // Passed over at its first bytes and not called again before the second candidate.
    EXPECT_EQ(stranger.accepted, 1);
    EXPECT_EQ(peer.got.size(), 1u);
}

// The rendezvous of another job has the first port and refuses us. The next candidate is tried. If
// there is no other one, the refusal is delivered: the user has to know.
TEST(Client, PassesOverARefusalWhileThereAreOthers) {
    asio::io_context loop;
    Peer other(loop), peer(loop);
    other.answer = ToNode(Refused{"this is run 7"});
    Node node(loop);
    node.connect({other.port(), peer.port()}, kNever);
    ASSERT_TRUE(run_until(loop, [&] { return !node.messages.empty(); }));
    EXPECT_TRUE(std::holds_alternative<Welcome>(node.messages[0]));
    Node alone(loop);
    alone.connect({other.port()}, kNever);
    ASSERT_TRUE(run_until(loop, [&] { return !alone.messages.empty(); }));
    EXPECT_EQ(alone.messages[0], *other.answer);
}

// Another node of this host, which does not lead, has got the first port. It says "wait", again and
// again, and the leader is behind the second one. Alone it is waited for, as it says.
TEST(Client, PassesOverOneThatKnowsNoLeaderWhileThereAreOthers) {
    asio::io_context loop;
    Peer dormant(loop), peer(loop);
    dormant.answer = ToNode(Elsewhere{});
    Node node(loop);
    node.connect({dormant.port(), peer.port()}, kNever);
    ASSERT_TRUE(run_until(loop, [&] { return !node.messages.empty(); }));
    EXPECT_TRUE(std::holds_alternative<Welcome>(node.messages[0]));
    Node alone(loop);
    alone.connect({dormant.port()}, kNever);
    ASSERT_TRUE(run_until(loop, [&] { return !alone.messages.empty(); }));
    EXPECT_EQ(alone.messages[0], *dormant.answer);
    // One that knows the leader is believed at once.
    dormant.answer = ToNode(Elsewhere{"127.0.0.1", 1});
    Node told(loop);
    told.connect({dormant.port(), peer.port()}, kNever);
    ASSERT_TRUE(run_until(loop, [&] { return !told.messages.empty(); }));
    EXPECT_EQ(told.messages[0], *dormant.answer);
}

// Our own rendezvous refuses for good, so no other candidate can be ours.
TEST(Client, BelievesARefusalForGoodAtOnce) {
    asio::io_context loop;
    Peer ours(loop), peer(loop);
    ours.answer = ToNode(Refused{"node gpu01 runs ddprun 0.0.9", true});
    Node node(loop);
    node.connect({ours.port(), peer.port()}, kNever);
    ASSERT_TRUE(run_until(loop, [&] { return !node.messages.empty(); }));
    EXPECT_EQ(node.messages[0], *ours.answer);
    EXPECT_EQ(peer.accepted, 0);
}

// A node only guesses that a service of its job is on that port. The rendezvous of another job is
// there and refuses. This must not end the node: its own leader may be slow.
TEST(Client, BelievesNoRefusalOfAGuess) {
    asio::io_context loop;
    Peer other(loop);
    other.answer = ToNode(Refused{"this is run 7"});
    Node node(loop);
    node.client.connect({{"127.0.0.1", other.port(), {}, true}},
                        Hello{"8812", {"gpu01", Incarnation{7}}, "0.1.0", 0},
                        boot_now() + std::chrono::milliseconds{300});
    ASSERT_TRUE(run_until(loop, [&] { return !node.lost.empty(); }));
    EXPECT_TRUE(node.messages.empty());
    EXPECT_EQ(node.lost[0].code(), ErrorCode::timed_out);
    EXPECT_GT(other.accepted, 1) << "it calls on";
}

// The connection is cut. It is reported once, and the agent may call again from within the report,
// as it does.
TEST(Client, CallsAgainAfterACut) {
    asio::io_context loop;
    Peer peer(loop);
    int ups = 0, losses = 0;
    Lines lines;
    Client client(
        loop, lines.log(),
        {[&](const std::string&) { ++ups; }, [](const ToNode&) {},
         [&](const Error& error) {
             EXPECT_EQ(error.code(), ErrorCode::closed);
             ++losses;
             client.connect({{"127.0.0.1", peer.port()}}, examples_to_leader()[0], kNever);
         }});
    client.connect({{"127.0.0.1", peer.port()}}, examples_to_leader()[0], kNever);
    ASSERT_TRUE(run_until(loop, [&] { return ups == 1; }));
    peer.link->drop();
    ASSERT_TRUE(run_until(loop, [&] { return ups == 2; }));
    EXPECT_EQ(losses, 1);
}

// A peer that is up sends garbage, as a bug or a wrong version would. The connection ends with
// `malformed` and is not used any more.
TEST(Client, LosesAPeerThatTalksNonsense) {
    asio::io_context loop;
    Peer peer(loop);
    Node node(loop);
    node.connect({peer.port()}, kNever);
    ASSERT_TRUE(run_until(loop, [&] { return !node.up.empty(); }));
    peer.link->send("\xff\xff");
    ASSERT_TRUE(run_until(loop, [&] { return !node.lost.empty(); }));
    EXPECT_EQ(node.lost[0].code(), ErrorCode::malformed);
    EXPECT_FALSE(node.client.is_up());
}

// close() still sends what is queued, so a last Leave arrives, and calls nobody. Destruction calls
// nobody either, in each phase of a call.
TEST(Client, ClosesQuietly) {
    asio::io_context loop;
    Peer peer(loop);
    Node node(loop);
    node.connect({peer.port()}, kNever);
    ASSERT_TRUE(run_until(loop, [&] { return !node.messages.empty(); }));
    node.client.send(ToLeader(Leave{"done"}));
    node.client.close();
    ASSERT_TRUE(run_until(loop, [&] { return peer.ended; }));
    EXPECT_EQ(peer.got.back(), ToLeader(Leave{"done"}));
    EXPECT_TRUE(node.lost.empty());
    // Before the first attempt.
    {
        Node brief(loop);
        brief.connect({peer.port()}, kNever);
    }
    // In the middle of the call, after a few steps of the loop.
    {
        Node brief(loop);
        brief.connect({peer.port()}, kNever);
        run_until(loop, [&, n = 0]() mutable { return ++n > 3; });
    }
    settle(loop);
}

// The keeper holds a duplicate of the socket. When ddprun is dead it writes Gone there, and the
// leader must still get it. Here nobody dies; the duplicate alone writes.
TEST(Client, LendsItsSocketToTheKeeper) {
    asio::io_context loop;
    Peer peer(loop);
    int duplicate = -1;
    {
        Node node(loop);
        node.connect({peer.port()}, kNever);
        ASSERT_TRUE(run_until(loop, [&] { return !node.messages.empty(); }));
        duplicate = ::dup(node.client.native_handle());
        const std::string bytes = node.client.gone_frame({"gpu01", Incarnation{7}});
        ASSERT_EQ(::write(duplicate, bytes.data(), bytes.size()),
                  static_cast<ssize_t>(bytes.size()));
        // The Hello and the Gone.
        ASSERT_TRUE(run_until(loop, [&] { return peer.got.size() == 2; }));
    }
    ::close(duplicate);
    EXPECT_EQ(peer.got[1], ToLeader(Gone{{"gpu01", Incarnation{7}}}));
}

}  // namespace
}  // namespace ddprun::rendezvous
