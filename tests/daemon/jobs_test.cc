// The jobs behind one endpoint, over real sockets, with the real service for each job: each run id
// is a job of its own, from its first node to its end.
#include "daemon/jobs.h"

#include <gmock/gmock.h>

#include "base/hexadecimal.h"
#include "daemon/endpoint.h"
#include "rendezvous/ledger/ledger_folder.h"
#include "rendezvous/link/client.h"
#include "tests/rendezvous/examples.h"
#include "tests/support/loop.h"

namespace ddprun::rendezvous {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// What ddprun-rendezvous consists of, on one loop. The ledger is in memory unless the test gives a
// place.
struct Daemon {
    explicit Daemon(LedgerPlace ledger = {}, IdentityConfig identity = {})
        : files(loop),
          secrets(loop, files, std::move(identity)),
          jobs(loop, files, secrets, std::move(ledger), nullptr, "0.1.0", lines.log()) {
        tcp::acceptor acceptor = listener(loop);
        port = acceptor.local_endpoint().port();
        Endpoint::Services services;
        services.agent_link = [this](tcp::socket socket) { jobs.take(std::move(socket)); };
        endpoint.emplace(loop, std::move(acceptor), services, lines.log(), Endpoint::Patience{});
        endpoint->start();
    }
    bool until(const std::function<bool()>& condition) { return run_until(loop, condition); }

    asio::io_context loop;
    Lines lines;
    FileThread files;
    Secrets secrets;
    Jobs jobs;
    std::uint16_t port = 0;
    std::optional<Endpoint> endpoint;
};

// A node that joins, echoes the first Acks, and raises its floor when its generation is over. It
// never runs a worker; complete() says that all have exited with 0.
struct Node {
    Node(Daemon& daemon, const std::string& run, const std::string& name, int nodes = 1)
        : Node(daemon, run, name, limits_of(nodes)) {}
    // `of_job` is the job that it was in before, as the leader's Welcome has named it; 0: none.
    Node(Daemon& daemon, const std::string& run, const std::string& name, const Limits& limits,
         std::uint64_t of_job = 0, Secrets* secrets = nullptr)
        : job(of_job),
          client(
              daemon.loop, [](const Note&) {},
              {[](const std::string&) {}, [this](const ToNode& message) { came(message); },
               [](const Error&) {}},
              secrets) {
        client.connect({{"127.0.0.1", daemon.port}},
                       Hello{run, {name, Incarnation{1}}, "0.1.0", 0, limits}, kNever);
    }
    // A job of exactly so many nodes, with the times of example_limits().
    static Limits limits_of(int nodes) {
        Limits limits = example_limits();
        limits.min_nodes = limits.max_nodes = nodes;
        return limits;
    }
    void came(const ToNode& message) {
        if (const auto* m = std::get_if<Parked>(&message)) parked = m->sentence;
        if (const auto* m = std::get_if<Welcome>(&message)) {
            lease = m->times.lease;
            beat.number = 1;
            client.send(Join{example_offer(1), beat, 0, job});
            job = m->job;
        }
        if (const auto* m = std::get_if<Refused>(&message)) refused = m->sentence;
        // A generation needs the echoes of the first Acks. Later ones are answered only to raise
        // the floor.
        if (const auto* m = std::get_if<Ack>(&message);
            m && (beat.number < 5 || m->over > beat.floor)) {
            ++beat.number;
            beat.echo = m->number;
            beat.floor = m->over;
            client.send(beat);
        }
        if (const auto* m = std::get_if<Assigned>(&message)) assigned = m->place;
        if (const auto* m = std::get_if<Finished>(&message)) {
            finished = m->ending;
            // A node leaves when it has the end.
            client.close();
        }
    }
    // The Beat of a node whose workers have all exited with 0.
    void complete() {
        ++beat.number;
        beat.running = assigned->generation;
        beat.complete = true;
        client.send(beat);
    }

    std::uint64_t job;  // the job that it has been in
    std::string refused;
    Client client;
    Beat beat;
    Duration lease{};
    std::string parked;  // the newest sentence
    std::optional<NodePlace> assigned;
    std::optional<Ending> finished;
};

// Two runs at one port know nothing of each other. Each has the limits and times of its own nodes,
// and the end of one does not touch the other.
TEST(Jobs, ServesEachRunByItself) {
    Daemon daemon;
    Node a(daemon, "left", "a", 2), b(daemon, "left", "b", 2), c(daemon, "right", "c");
    ASSERT_TRUE(daemon.until([&] { return a.assigned && b.assigned && c.assigned; }));
    EXPECT_EQ(a.assigned->nodes, 2);
    EXPECT_EQ(c.assigned->nodes, 1);
    EXPECT_EQ(c.lease, example_limits().times.lease);
    EXPECT_THAT(daemon.jobs.run_ids(), ElementsAre("left", "right"));
    // The run "right" ends; "left" goes on.
    c.complete();
    ASSERT_TRUE(daemon.until([&] { return daemon.jobs.run_ids().size() == 1; }));
    EXPECT_EQ(c.finished->code, 0);
    EXPECT_FALSE(a.finished);
    EXPECT_TRUE(daemon.lines.has("run \"right\": has ended with code 0: the worker"));
}

// The id of a run that has ended is free. The next job with it begins at generation 0, and the
// ledger of the one before lies beside it.
TEST(Jobs, BeginsAnewWhenARunIdComesAgain) {
    Folder folder;
    Daemon daemon({LedgerPlace::Kind::directory, folder / "root", {}});
    // "job/1" is a run id; the slash becomes %2F in the folder's name.
    const std::string ledger = folder / "root/job%2F1";
    std::string aside;
    for (int i = 0; i < 2; ++i) {
        Node node(daemon, "job/1", "a");
        ASSERT_TRUE(daemon.until([&] { return node.assigned.has_value(); }));
        EXPECT_EQ(node.assigned->generation, Generation{0});
        node.complete();
        ASSERT_TRUE(daemon.until([&] { return daemon.jobs.run_ids().empty(); }));
        if (i == 0) aside = ledger + "-finished-" + hexadecimal(read_claim(ledger)->mark);
    }
    EXPECT_TRUE(std::filesystem::exists(ledger + "/entry-000001.json"));
    EXPECT_TRUE(std::filesystem::exists(aside));
}

// A node was away when its job ended, and another job has the run id now. The node must not take
// part: it would take the end of the new job for its own. With a ledger in a folder and in memory.
TEST(Jobs, RefusesANodeWhoseJobHasEnded) {
    for (const bool lasting : {true, false}) {
        Folder folder;
        Daemon daemon(lasting ? LedgerPlace{LedgerPlace::Kind::directory, folder / "root", {}}
                              : LedgerPlace{});
        Node first(daemon, "job", "a");
        ASSERT_TRUE(daemon.until([&] { return first.assigned.has_value(); }));
        first.complete();
        ASSERT_TRUE(daemon.until([&] { return daemon.jobs.run_ids().empty(); }));
        Node next(daemon, "job", "b");
        ASSERT_TRUE(daemon.until([&] { return next.assigned.has_value(); }));
        // The Welcome tells the two jobs of one run id apart.
        EXPECT_NE(next.job, first.job);
        // It says in its Join which job it has been in.
        Node late(daemon, "job", "c", Node::limits_of(1), first.job);
        ASSERT_TRUE(daemon.until([&] { return !late.refused.empty(); }));
        EXPECT_THAT(late.refused,
                    testing::HasSubstr("node c belongs to another job with run id \"job\""));
        // A node of the new job may come; it is a spare.
        Node spare(daemon, "job", "d", Node::limits_of(1), next.job);
        ASSERT_TRUE(daemon.until([&] { return !spare.parked.empty(); }));
    }
}

// A user starts a job with wrong limits and cancels it before it has begun. The next start with
// this run id must have its own limits, and not those of the nodes that are gone.
TEST(Jobs, BeginsAnewWhenAllHaveGoneBeforeItBegan) {
    Folder folder;
    Daemon daemon({LedgerPlace::Kind::directory, folder / "root", {}});
    // Three nodes are needed and one has come.
    Node gone(daemon, "job", "a", 3);
    ASSERT_TRUE(daemon.until([&] { return gone.lease != Duration{}; }));
    gone.client.close();
    ASSERT_TRUE(daemon.until([&] { return daemon.jobs.connections() == 0; }));
    // The job is still there; its nodes may come back.
    EXPECT_THAT(daemon.jobs.run_ids(), ElementsAre("job"));
    Node next(daemon, "job", "a");
    ASSERT_TRUE(daemon.until([&] { return next.assigned.has_value(); }));
    EXPECT_FALSE(daemon.lines.has("whose times and limits are used"));
}

// A ledger cannot be written. That attempt ends with a line, and the daemon goes on: other jobs run
// on it. The node's connection is closed, so it calls again at once; ten calls show that it does
// not wait for an answer each time.
TEST(Jobs, LogsALedgerThatCannotBe) {
    Daemon daemon({LedgerPlace::Kind::directory, "/dev/null/root", {}});
    Node node(daemon, "job", "a");
    const auto attempts = [&daemon] {
        return std::ranges::count_if(daemon.lines.all, [](const std::string& line) {
            return line.find("begins with node a") != std::string::npos;
        });
    };
    ASSERT_TRUE(daemon.until([&] { return attempts() >= 10; }));
    EXPECT_TRUE(daemon.lines.has("/dev/null/root"));
    EXPECT_TRUE(daemon.until([&] { return daemon.jobs.run_ids().empty(); }));
    EXPECT_FALSE(node.assigned);
}

// A stranger knows the run id, but not the secret. What it says before its proof must begin no job,
// and must not change the limits or the restart count of one: it could let a job "succeed" with one
// node, or end it.
TEST(Jobs, AStrangerBeginsNothingAndChangesNothing) {
    Daemon daemon({}, {.secret = "0123456789abcdef"});
    FileThread files(daemon.loop);
    // One cannot prove anything, the other has the secret of another job.
    Secrets theirs(daemon.loop, files, {.secret = "another, as long"});
    Node bare(daemon, "job", "x", 1), wrong(daemon, "job", "y", Node::limits_of(1), 0, &theirs);
    ASSERT_TRUE(
        daemon.until([&] { return daemon.lines.has("node x") && daemon.lines.has("node y"); }));
    EXPECT_THAT(daemon.jobs.run_ids(), IsEmpty());
    EXPECT_FALSE(daemon.lines.has("begins with node"));
    // The job itself begins with its own limits.
    Secrets ours(daemon.loop, files, {.secret = "0123456789abcdef"});
    Node a(daemon, "job", "a", Node::limits_of(2), 0, &ours);
    Node b(daemon, "job", "b", Node::limits_of(2), 0, &ours);
    ASSERT_TRUE(daemon.until([&] { return a.assigned && b.assigned; }));
    EXPECT_EQ(a.assigned->nodes, 2);
    EXPECT_FALSE(bare.assigned || wrong.assigned);
    EXPECT_FALSE(daemon.lines.has("is not that of"));
}

// --on-join is the job's own choice, and the daemon must obey it: a late node waits here.
TEST(Jobs, TreatsLateNodesAsTheJobSays) {
    Daemon daemon;
    Limits limits = example_limits();
    limits.min_nodes = 1;
    limits.max_nodes = 2;
    limits.on_join = OnJoin::wait;
    // No last call, so one node begins at once; and long times, so that nothing else happens.
    limits.times = {std::chrono::seconds{60}, std::chrono::seconds{60}, Duration{0}};
    Node first(daemon, "job", "a", limits);
    ASSERT_TRUE(daemon.until([&] { return first.assigned.has_value(); }));
    Node late(daemon, "job", "b", limits);
    ASSERT_TRUE(daemon.until([&] { return !late.parked.empty(); }));
    EXPECT_THAT(late.parked, testing::HasSubstr("(--on-join=wait)"));
}

// Two nodes of a job have different options, a usual mistake with one script for each host. The
// limits of the first one count, and a line says so.
TEST(Jobs, NamesANodeWhoseCommandLineDiffers) {
    Daemon daemon;
    Node a(daemon, "job", "a", 2);
    ASSERT_TRUE(daemon.until([&] { return !daemon.jobs.run_ids().empty(); }));
    Node b(daemon, "job", "b", 3);
    ASSERT_TRUE(daemon.until([&] { return a.assigned && b.assigned; }));
    EXPECT_TRUE(
        daemon.lines.has("the command line of node b (--nnodes=3) is not that of a (--nnodes=2), "
                         "whose times and limits are used"));
}

}  // namespace
}  // namespace ddprun::rendezvous
