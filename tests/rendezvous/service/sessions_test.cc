// The sessions of a service over real sockets. The test plays the gate, the machine and the nodes.
// service_test.cc has them as parts of a whole service.
#include "rendezvous/service/sessions.h"

#include <gmock/gmock.h>

#include <boost/asio/write.hpp>

#include "rendezvous/wire/frame.h"
#include "rendezvous/wire/wire.h"
#include "tests/support/loop.h"

namespace ddprun::rendezvous {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// Sessions, and what they report: "1 says hello", "1 is lost".
struct Leader {
    explicit Leader(asio::io_context& loop) : loop(loop) {
        sessions.emplace(
            loop, lines.log(),
            Sessions::Handlers{[this](const Event& event) { note(event); }, [this] { ++left; }});
    }
    void note(const Event& event) {
        if (const auto* came = std::get_if<Came>(&event)) {
            const auto* leave = std::get_if<Leave>(&came->message);
            events.push_back(std::to_string(came->session.value) + " says " +
                             (leave ? leave->reason : "hello"));
        } else {
            events.push_back(std::to_string(std::get<ConnectionLost>(event).session.value) +
                             " is lost");
        }
        if (on_event) on_event();
    }
    asio::io_context& loop;
    Lines lines;
    std::vector<std::string> events;
    int left = 0;
    std::function<void()> on_event;
    std::optional<Sessions> sessions;
};

// A node whose connection the gate has just admitted.
struct Node {
    explicit Node(Leader& leader) : socket(leader.loop), reader(kLeaderFrameLimit) {
        tcp::acceptor door = listener(leader.loop);
        socket.connect(door.local_endpoint());
        const auto link = std::make_shared<Link>(door.accept(), kFirstFrameLimit, Link::Handlers{});
        link->start(std::chrono::seconds{10});
        say(std::string(kPreface));
        read();
        leader.sessions->admit(link, Hello{"8812", {"gpu01", Incarnation{7}}, "0.1.0", 0});
    }
    void read() {
        socket.async_read_some(
            asio::buffer(piece), [this](boost::system::error_code error, std::size_t size) {
                reader.add({piece, size});
                while (auto body = reader.next().value())
                    got.push_back(std::get<Refused>(*decode_to_node(*body)).sentence);
                if (error)
                    ended = true;
                else
                    read();
            });
    }
    void say(const std::string& bytes) { asio::write(socket, asio::buffer(bytes)); }
    void leave(const std::string& reason) { say(frame(encode(ToLeader(Leave{reason})))); }
    // It is ready to leave: it says nothing more and waits for the leader's end.
    void is_ready() { socket.shutdown(tcp::socket::shutdown_send); }

    tcp::socket socket;
    char piece[4096];
    FrameReader reader;
    std::vector<std::string> got;  // sentences; any message would do
    bool ended = false;            // it has seen the leader's end
};

// A message that shows in the test.
ToNode sentence(const std::string& text) { return Refused{text}; }

// Two nodes, each with a number of its own. Messages find their way in both directions, and the
// machine hears of a lost connection once.
TEST(Sessions, GiveEachConnectionANumber) {
    asio::io_context loop;
    Leader leader(loop);
    Node first(leader), second(leader);
    second.leave("bye");
    ASSERT_TRUE(run_until(loop, [&] { return leader.events.size() == 3; }));
    leader.sessions->send(Session{1}, sentence("to the first"));
    leader.sessions->send(Session{2}, sentence("to the second"));
    leader.sessions->send(Session{3}, sentence("to nobody"));
    ASSERT_TRUE(run_until(loop, [&] { return !first.got.empty() && !second.got.empty(); }));
    EXPECT_THAT(first.got, ElementsAre("to the first"));
    EXPECT_THAT(second.got, ElementsAre("to the second"));
    first.socket.close();
    ASSERT_TRUE(run_until(loop, [&] { return leader.events.size() == 4; }));
    EXPECT_THAT(leader.events,
                ElementsAre("1 says hello", "2 says hello", "2 says bye", "1 is lost"));
    EXPECT_EQ(leader.sessions->connections(), 1u);
}

// A node with a bug sends a frame that is no message. Only its own session ends, and the log says
// why.
TEST(Sessions, GarbageEndsOneSession) {
    asio::io_context loop;
    Leader leader(loop);
    Node broken(leader), other(leader);
    broken.say(frame("\xff\xff"));
    ASSERT_TRUE(run_until(loop, [&] { return broken.ended; }));
    EXPECT_TRUE(leader.lines.has("connection closed: from 127.0.0.1:"));
    other.leave("bye");
    ASSERT_TRUE(run_until(loop, [&] { return leader.events.size() == 4; }));
    EXPECT_THAT(leader.events,
                ElementsAre("1 says hello", "2 says hello", "1 is lost", "2 says bye"));
}

// The machine refuses a node and closes its session at once. The node still reads the sentence.
// What it says afterwards, and its end, are no events any more.
TEST(Sessions, AClosedSessionStillSendsItsLastMessage) {
    asio::io_context loop;
    Leader leader(loop);
    Node node(leader);
    leader.sessions->send(Session{1}, sentence("this is run 7"));
    leader.sessions->close(Session{1});
    leader.sessions->send(Session{1}, sentence("too late"));
    EXPECT_FALSE(leader.sessions->all_left());
    node.leave("too late");
    ASSERT_TRUE(run_until(loop, [&] { return node.ended; }));
    EXPECT_THAT(node.got, ElementsAre("this is run 7"));
    node.socket.close();
    ASSERT_TRUE(run_until(loop, [&] { return leader.left == 1; }));
    EXPECT_TRUE(leader.sessions->all_left());
    EXPECT_THAT(leader.events, ElementsAre("1 says hello"));
}

// The job has ended. A node that is ready early must not see the leader's end before the others are
// ready too: it would leave, and its batch step might end while others still write.
TEST(Sessions, AtTheEndAllNodesLeaveTogether) {
    asio::io_context loop;
    Leader leader(loop);
    Node early(leader), late(leader);
    leader.sessions->finish();
    early.is_ready();
    ASSERT_TRUE(run_until(loop, [&] { return leader.left == 1; }));
    EXPECT_FALSE(leader.sessions->all_left());
    late.is_ready();
    ASSERT_TRUE(run_until(loop, [&] { return leader.sessions->all_left(); }));
    settle(loop);
    EXPECT_FALSE(early.ended || late.ended);
    leader.sessions.reset();
    EXPECT_TRUE(run_until(loop, [&] { return early.ended && late.ended; }));
    EXPECT_THAT(leader.events, SizeIs(2)) << "no node counts as lost";
}

// A node that never gets ready does not hold up the others for ever: the service gives it up.
TEST(Sessions, GivesUpANodeThatDoesNotLeave) {
    asio::io_context loop;
    Leader leader(loop);
    Node hanging(leader);
    leader.sessions->finish();
    leader.sessions->give_up_leaving();
    EXPECT_TRUE(leader.sessions->all_left());
    EXPECT_TRUE(run_until(loop, [&] { return hanging.ended; }));
    EXPECT_EQ(leader.left, 0) << "no call from within a call";
}

// The leader's own node, without a socket. Nothing is passed on from within a call, since the
// machine must not be entered twice. After its close it hears nothing more, not even what was on
// its way.
TEST(Sessions, TheOwnNodeTalksWithoutASocket) {
    asio::io_context loop;
    Leader leader(loop);
    std::vector<ToNode> got;
    const Session own = leader.sessions->open_local([&](const ToNode& one) { got.push_back(one); });
    leader.sessions->local_send(own, Leave{"first"});
    leader.sessions->local_send(own, Leave{"second"});
    leader.sessions->send(own, sentence("answer"));
    EXPECT_THAT(leader.events, IsEmpty());
    EXPECT_THAT(got, IsEmpty());
    settle(loop);
    EXPECT_THAT(leader.events, ElementsAre("1 says first", "1 says second"));
    EXPECT_THAT(got, ElementsAre(sentence("answer")));
    leader.sessions->send(own, sentence("too late"));
    leader.sessions->close_local(own);
    leader.sessions->close_local(own);
    settle(loop);
    EXPECT_THAT(leader.events, ElementsAre("1 says first", "1 says second", "1 is lost"));
    EXPECT_THAT(got, SizeIs(1));
}

// The machine closes the own node's session. What it sent before still arrives, as on a socket.
TEST(Sessions, TheOwnNodeHearsItsLastMessage) {
    asio::io_context loop;
    Leader leader(loop);
    std::vector<ToNode> got;
    const Session own = leader.sessions->open_local([&](const ToNode& one) { got.push_back(one); });
    leader.sessions->send(own, sentence("the job has ended"));
    leader.sessions->close(own);
    leader.sessions->local_send(own, Leave{"too late"});
    settle(loop);
    EXPECT_THAT(got, ElementsAre(sentence("the job has ended")));
    EXPECT_THAT(leader.events, IsEmpty());
}

// The owner may let go of the sessions while they report something, here an event and a log line.
// Nothing is reported after that. Sanitizers see a use of what is gone.
TEST(Sessions, MayBeDestroyedWithinAHandler) {
    asio::io_context loop;
    Leader leader(loop);
    Node node(leader), other(leader);
    leader.on_event = [&] { leader.sessions.reset(); };
    node.leave("bye");
    node.leave("again");
    ASSERT_TRUE(run_until(loop, [&] { return node.ended && other.ended; }));
    EXPECT_THAT(leader.events, ElementsAre("1 says hello", "2 says hello", "1 says bye"));

    Leader second(loop);
    second.sessions.emplace(
        loop, [&](const Note&) { second.sessions.reset(); },
        Sessions::Handlers{[&](const Event& event) { second.note(event); },
                           [&] { ++second.left; }});
    Node broken(second);
    broken.say(frame("\xff\xff"));
    ASSERT_TRUE(run_until(loop, [&] { return broken.ended; }));
    EXPECT_THAT(second.events, ElementsAre("1 says hello"));
}

}  // namespace
}  // namespace ddprun::rendezvous
