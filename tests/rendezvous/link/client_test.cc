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

Time in(std::chrono::milliseconds time) { return boot_now() + time; }

// A client that writes down what it is told.
struct Node {
    explicit Node(asio::io_context& loop) : client(loop, lines.log(), callbacks()) {}

    Client::Callbacks callbacks() {
        return {[this](const std::string& address) { up.push_back(address); },
                [this](const ToNode& message) { messages.push_back(message); },
                [this](const Error& error) { lost.push_back(error); }};
    }
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

// A peer whose every answer the test decides: one accepted connection at a time.
struct Peer {
    explicit Peer(asio::io_context& loop) : acceptor(listener(loop)) { accept(); }

    std::uint16_t port() { return acceptor.local_endpoint().port(); }
    void accept() {
        acceptor.async_accept([this](boost::system::error_code error, tcp::socket socket) {
            if (error) return;
            ++accepted;
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
        link->start(Duration{0});
    }
    ~Peer() {
        if (link) link->drop();
    }

    tcp::acceptor acceptor;
    std::string raw;  // said instead of our protocol
    std::optional<ToNode> answer = examples_to_node()[0];
    std::vector<std::shared_ptr<tcp::socket>> keep;
    std::shared_ptr<Link> link;
    std::vector<ToLeader> got;
    int accepted = 0;
    bool ended = false;
};

// The opening goes out first; its answer brings the link up; then messages pass both ways, in
// order.
TEST(Client, MeetsThePeerAndTalks) {
    asio::io_context loop;
    Peer peer(loop);
    Node node(loop);
    node.connect({peer.port()}, kNever);
    EXPECT_EQ(node.client.native_handle(), -1);
    node.client.send(ToLeader(Leave{"dropped, for it is not up"}));
    ASSERT_TRUE(run_until(loop, [&] { return !node.messages.empty(); }));
    EXPECT_THAT(node.up, ElementsAre("127.0.0.1"));
    EXPECT_GE(node.client.native_handle(), 0);
    for (const ToLeader& message : examples_to_leader()) node.client.send(message);
    ASSERT_TRUE(
        run_until(loop, [&] { return peer.got.size() == examples_to_leader().size() + 1; }));
    peer.got.erase(peer.got.begin());
    EXPECT_EQ(peer.got, examples_to_leader());
    EXPECT_TRUE(node.lost.empty());
}

// Nobody listens yet: the client goes on, and meets the peer as soon as it is there.
TEST(Client, WaitsForAPeerThatIsNotUpYet) {
    asio::io_context loop;
    tcp::acceptor reserved(loop, tcp::v4());
    reserved.bind({asio::ip::address_v4::loopback(), 0});  // bound, not listening: refuses
    Node node(loop);
    node.connect({reserved.local_endpoint().port()}, kNever);
    int rounds = 0;
    run_until(loop, [&] { return ++rounds > 20; });  // several refused tries
    EXPECT_TRUE(node.up.empty() && node.lost.empty());
    reserved.listen();
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

// A deadline in the past and no candidates at all: an answer all the same, and never from within
// the call.
TEST(Client, AnswersAnImpossibleCall) {
    asio::io_context loop;
    Node node(loop);
    node.client.connect({}, examples_to_leader()[0], in(std::chrono::milliseconds{-1}));
    EXPECT_TRUE(node.lost.empty());
    ASSERT_TRUE(run_until(loop, [&] { return !node.lost.empty(); }));
    EXPECT_THAT(node.lost[0].sentence(), HasSubstr("no candidate"));
}

// A stranger on the first port, who takes the call and talks something else: the second candidate
// is ours.
TEST(Client, PassesOverAStranger) {
    asio::io_context loop;
    Peer stranger(loop), peer(loop);
    stranger.raw = "SSH-2.0-OpenSSH_9.2\r\n";
    Node node(loop);
    node.connect({stranger.port(), peer.port()}, kNever);
    ASSERT_TRUE(run_until(loop, [&] { return !node.up.empty(); }));
    EXPECT_EQ(stranger.accepted, 1);
    EXPECT_EQ(peer.got.size(), 1u);
}

// Another job's rendezvous on the first port refuses us: the next one is tried. Alone, its word is
// delivered.
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

// A connection that is cut is lost once, and the client may call again from within that callback.
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

// Garbage in the middle of a connection that is up.
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

// close() sends what is queued and calls nobody; so does destruction, in each phase.
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
    {
        Node brief(loop);
        brief.connect({peer.port()}, kNever);
    }
    {
        Node brief(loop);
        brief.connect({peer.port()}, kNever);
        run_until(loop, [&, n = 0]() mutable { return ++n > 3; });
    }
    settle(loop);
}

// The keeper's duplicate: when the process is gone (here: only its copy is closed), the frame still
// arrives.
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
        ASSERT_TRUE(run_until(loop, [&] { return peer.got.size() == 2; }));
    }
    ::close(duplicate);
    EXPECT_EQ(peer.got[1], ToLeader(Gone{{"gpu01", Incarnation{7}}}));
}

}  // namespace
}  // namespace ddprun::rendezvous
