// What a node does with the ledger that its leader names, and how it finds a leader that has moved.
// The sockets are real, on loopback; the test itself answers the searches in the ledger.
#include "agent/node/link.h"

#include <gmock/gmock.h>

#include "base/system/boot_clock.h"
#include "rendezvous/ledger/ledger_memory.h"
#include "tests/support/builders.h"
#include "tests/support/loop.h"

namespace ddprun::agent {
namespace {

using namespace ddprun::rendezvous;
using namespace ddprun::test;
using testing::ElementsAre;
using testing::IsEmpty;

// A ledger in memory that looks like a shared folder. Since its mark is not 0, the Welcome names
// it, and a node has to look for it.
class MarkedLedger final : public Ledger {
  public:
    explicit MarkedLedger(asio::io_context& loop) : memory_(loop) {}
    void read(EntryNumber from, ReadDone done) override { memory_.read(from, std::move(done)); }
    void create(LedgerEntry entry, CreateDone done) override {
        memory_.create(std::move(entry), std::move(done));
    }
    std::string name() const override { return "directory:/l/job"; }
    void look(EntryNumber from, LookDone done) override { memory_.look(from, std::move(done)); }
    std::uint64_t mark() const override { return 5; }

  private:
    LedgerMemory memory_;
};

// Three nodes are needed and two take part, so no generation starts and nothing disturbs the
// sequence of messages.
rendezvous::MachineConfig config(const std::string& name) {
    rendezvous::MachineConfig config;
    config.run_id = "job";
    config.self = node(name);
    config.version = "1";
    config.limits.min_nodes = config.limits.max_nodes = 3;
    config.succession = true;
    return config;
}

// A leader "a" that serves, and the link of node "b". `look` and `members` hold a search that the
// link has begun and that waits for the test's answer. `came` has the events of the link, in order.
struct Pair {
    asio::io_context loop;
    Lines lines;
    MarkedLedger ledger{loop};
    tcp::acceptor acceptor = listener(loop);
    const std::uint16_t port = acceptor.local_endpoint().port();
    std::optional<Service> leader;
    Service own{loop, {}, config("b"), ledger, lines.log(), [](const Ending&) {}};
    std::vector<std::string> came;
    std::function<void(bool)> look;
    std::function<void(std::vector<rendezvous::Peer>)> members;
    std::unique_ptr<Link> link =
        make_link(loop,
                  // Nobody listens at port 1, so the call is refused at once.
                  {.candidates = {{"127.0.0.1", 1}},
                   .look =
                       [this](const Welcome& welcome, std::function<void(bool)> done) {
                           EXPECT_EQ(welcome.ledger, "directory:/l/job");
                           EXPECT_EQ(welcome.ledger_mark, 5u);
                           look = std::move(done);
                       },
                   .members =
                       [this](std::function<void(std::vector<rendezvous::Peer>)> done) {
                           members = std::move(done);
                       },
                   // The default is 5 s, which a test need not wait.
                   .members_after = std::chrono::milliseconds{1}},
                  own, lines.log(), [this](const Event& event) { note(event); });

    Pair() {
        leader.emplace(loop, std::move(acceptor), config("a"), ledger, lines.log(),
                       [](const Ending&) {});
        leader->listen();
        leader->lead({node("a"), "127.0.0.1", port});
    }
    // Answers a Welcome as the agent does, with a Join. Other messages are only written down.
    void note(const Event& event) {
        if (std::get_if<LinkUp>(&event)) came.push_back("up");
        if (std::get_if<LinkLost>(&event)) came.push_back("lost");
        if (const auto* ledger = std::get_if<LedgerFound>(&event))
            came.push_back(ledger->found ? "ledger found" : "ledger not found");
        if (const auto* message = std::get_if<MessageCame>(&event)) {
            if (std::get_if<Welcome>(&message->message)) {
                came.push_back("welcome");
                Join join{offer(), {}};
                join.beat.number = 1;
                link->send(join);
            }
            if (std::get_if<Ack>(&message->message)) came.push_back("ack");
            if (std::get_if<Parked>(&message->message)) came.push_back("parked");
        }
    }
    // A node at its start: it knows only the endpoint (the candidates above) and may call others.
    void call_endpoint() {
        link->connect({.deadline = boot_now() + std::chrono::seconds{20},
                       .hello = {"job", node("b"), "1", 0, {}},
                       .address = {},
                       .port = 0,
                       .once = false,
                       .self = false});
    }
    // A node that knows its leader's address. Returns when the link has begun to look for the
    // ledger.
    void call() {
        link->connect({.deadline = boot_now() + std::chrono::seconds{20},
                       .hello = {"job", node("b"), "1", 0, {}},
                       .address = "127.0.0.1",
                       .port = port,
                       .once = true,
                       .self = false});
        EXPECT_TRUE(run_until(loop, [this] { return look != nullptr; }));
        EXPECT_THAT(came, ElementsAre("up")) << "the Welcome waits for the look";
    }
    // Runs the loop until this is the newest event.
    bool comes(const std::string& what) {
        return run_until(loop, [&] { return !came.empty() && came.back() == what; });
    }
};

// This is the usual case. The Join says that the node reads the ledger, so it may lead after this
// leader, and no warning is logged.
TEST(Link, SaysThatItReadsTheLeadersLedger) {
    Pair pair;
    pair.call();
    pair.look(true);
    EXPECT_TRUE(pair.comes("ack"));
    EXPECT_THAT(pair.came, ElementsAre("up", "ledger found", "welcome", "parked", "ack"));
    EXPECT_FALSE(pair.lines.has("cannot find the ledger"));
}

// A folder that only one node sees is a frequent mistake. If nobody else could lead, the user
// should know it before the leader is lost.
TEST(Link, SaysThatItDoesNotReadIt) {
    Pair pair;
    pair.call();
    pair.look(false);
    EXPECT_TRUE(pair.comes("ack"));
    EXPECT_THAT(pair.came, ElementsAre("up", "ledger not found", "welcome", "parked", "ack"));
    EXPECT_TRUE(pair.lines.has("node b cannot find the ledger of node a (directory:/l/job)"));
}

// The look may take seconds on a slow file system, and the leader is lost meanwhile. The loss must
// not overtake the Welcome that came before it.
TEST(Link, KeepsTheOrderWhileItLooks) {
    Pair pair;
    pair.call();
    pair.leader.reset();
    // The loop gets many chances to hand on the loss too early.
    for (int i = 0; i < 100; ++i) settle(pair.loop);
    EXPECT_THAT(pair.came, ElementsAre("up"));
    pair.look(true);
    EXPECT_TRUE(pair.comes("lost"));
    EXPECT_THAT(pair.came, ElementsAre("up", "ledger found", "welcome", "lost"));
}

// Nobody is at the endpoint any more, but the job goes on elsewhere, and this node joins late. Its
// ledger names the members, and they know the leader. The first search finds nothing, so the node
// searches again.
TEST(Link, Rule10h_FindsTheJobByItsMembers) {
    Pair pair;
    pair.call_endpoint();
    EXPECT_TRUE(run_until(pair.loop, [&] { return pair.members != nullptr; }));
    std::exchange(pair.members, nullptr)({});
    EXPECT_TRUE(run_until(pair.loop, [&] { return pair.members != nullptr; }));
    std::exchange(pair.members, nullptr)({{node("a"), "127.0.0.1", pair.port}});
    EXPECT_TRUE(run_until(pair.loop, [&] { return pair.look != nullptr; }));
    pair.look(true);
    EXPECT_TRUE(pair.comes("ack"));
    EXPECT_TRUE(pair.lines.has("also calling other nodes of the job, for example a"));
}

// The search ends after the link was closed. The late answer must not open a connection that nobody
// expects.
TEST(Link, AsksForNoMembersOnceItIsClosed) {
    Pair pair;
    pair.call_endpoint();
    EXPECT_TRUE(run_until(pair.loop, [&] { return pair.members != nullptr; }));
    pair.link->close();
    pair.members({{node("a"), "127.0.0.1", pair.port}});
    for (int i = 0; i < 100; ++i) settle(pair.loop);
    EXPECT_THAT(pair.came, testing::IsEmpty());
}

// A look may outlive its connection. The next connection must wait for an answer to its own look.
TEST(Link, DropsTheLookOfAConnectionThatItHasLeft) {
    Pair pair;
    pair.call();
    const auto old = std::exchange(pair.look, nullptr);
    pair.came.clear();
    pair.call();
    old(true);
    EXPECT_THAT(pair.came, ElementsAre("up"));
    pair.look(false);
    EXPECT_TRUE(pair.comes("ack"));
    EXPECT_TRUE(pair.lines.has("node b cannot find the ledger"));
}

}  // namespace
}  // namespace ddprun::agent
