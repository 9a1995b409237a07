// The ledger in a real etcd on loopback, which is killed, frozen and started again under it. The
// tests are skipped where etcd is not installed.
#include "rendezvous/ledger/ledger_etcd.h"

#include <boost/asio/co_spawn.hpp>
#include <future>

#include "rendezvous/ledger/etcd_client.h"
#include "tests/rendezvous/ledger/etcd_server.h"
#include "tests/rendezvous/ledger/ledger_bench.h"

namespace ddprun::rendezvous {
namespace {

using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;

// Some endpoints on 127.0.0.1, as --ledger=etcd:… gives them.
LedgerPlace place_at(std::vector<std::uint16_t> ports, const std::string& job = "ddprun/job") {
    LedgerPlace place{LedgerPlace::Kind::etcd, job, {}};
    for (const auto port : ports) place.endpoints.push_back({"127.0.0.1", port});
    return place;
}

// An etcd for each test, so that no entry of another one is there.
class LedgerEtcdTest : public testing::Test {
  protected:
    void SetUp() override {
        if (!EtcdServer::installed()) GTEST_SKIP() << "etcd is not installed";
        // A proxy is meant for the web. The ledger must not use it; nobody listens on port 9.
        ::setenv("http_proxy", "http://127.0.0.1:9", 1);
        server.emplace();
    }
    // A ledger without a search for its series, and with 1 s instead of 2 s for each attempt: these
    // tests wait for it.
    std::unique_ptr<Ledger> direct(std::vector<std::uint16_t> ports) {
        return std::make_unique<LedgerEtcd>(
            bench.loop,
            std::make_unique<EtcdClient>(bench.loop, place_at(std::move(ports)), nullptr,
                                         std::chrono::seconds{1}),
            nullptr, "ddprun/direct/1/", 1);
    }
    // `failed` means that nobody knows what has been written. The machine asks again then, and so
    // does this.
    LedgerCreated create_until_known(Ledger& ledger, const LedgerEntry& entry) {
        LedgerCreated created;
        EXPECT_TRUE(comes_true([&] {
            created = bench.create(ledger, entry);
            return created.outcome != Outcome::failed;
        })) << created.sentence;
        return created;
    }

    std::optional<EtcdServer> server;
    LedgerBench bench;
};

TEST_F(LedgerEtcdTest, WritesOnce) {
    const auto ledger = bench.open(place_at({server->port()}));
    ASSERT_TRUE(ledger) << ledger.error();
    keeps_the_promises(bench, **ledger);
}

TEST_F(LedgerEtcdTest, ShowsANewerAllocation) {
    const auto ledger = bench.open(place_at({server->port()}));
    ASSERT_TRUE(ledger) << ledger.error();
    shows_newer_allocations(bench, **ledger);
}

// ddprun looks up a host's name itself: gRPC's own look-up does not work in a static binary. And a
// job id of any shape becomes a key.
TEST_F(LedgerEtcdTest, IsReachedByName) {
    LedgerPlace place{LedgerPlace::Kind::etcd, "", {{"localhost", server->port()}}};
    const auto ledger = bench.open(*of_job(place, "../a b"));
    ASSERT_TRUE(ledger) << ledger.error();
    EXPECT_EQ(bench.create(**ledger, example_entry(0)).outcome, Outcome::won);
}

// `ddprun --check` only looks: it sees the newest series, of any command, and begins none.
TEST_F(LedgerEtcdTest, ShowsTheNewestClaim) {
    const LedgerPlace place = place_at({server->port()});
    EXPECT_EQ(read_etcd_claim(place, nullptr).error().code(), ErrorCode::not_found);
    const auto first = bench.open(place);
    ASSERT_TRUE(first) << first.error();
    EXPECT_EQ(read_etcd_claim(place, nullptr)->mark, (*first)->mark());
    const auto second = bench.open(place, LedgerBench::owner("of another command"));
    ASSERT_TRUE(second) << second.error();
    EXPECT_EQ(read_etcd_claim(place, nullptr)->mark, (*second)->mark());
    EXPECT_NE((*first)->mark(), (*second)->mark());
    server->kill();
    EXPECT_THAT(read_etcd_claim(place, nullptr).error().sentence(),
                HasSubstr("Connection refused; check that"));
}

// Four nodes with a connection each create the same 20 entries. Each entry is won exactly once.
TEST_F(LedgerEtcdTest, OneOfManyWritersWins) {
    std::vector<std::future<std::vector<Outcome>>> writers;
    for (int i = 0; i < 4; ++i)
        writers.push_back(std::async(std::launch::async, [&, i] {
            LedgerBench own;
            const auto ledger = own.open(place_at({server->port()}));
            std::vector<Outcome> outcomes;
            for (int n = 0; n < 20; ++n)
                // The random number tells the writers apart.
                outcomes.push_back(own.create(**ledger, example_entry(n, i * 100 + n)).outcome);
            return outcomes;
        }));
    std::vector<int> won(20);
    for (auto& writer : writers) {
        const auto outcomes = writer.get();
        for (int n = 0; n < 20; ++n) {
            ASSERT_NE(outcomes[n], Outcome::failed);
            won[n] += outcomes[n] == Outcome::won;
        }
    }
    EXPECT_THAT(won, testing::Each(1));
}

// etcd is killed and started again. What was written is still there, and the same ledger object
// works again. Meanwhile the sentence names the endpoint, the reason and the way out.
TEST_F(LedgerEtcdTest, OutlivesAKilledServer) {
    const auto ledger = bench.open(place_at({server->port()}));
    ASSERT_EQ(bench.create(**ledger, example_entry(0)).outcome, Outcome::won);
    server->kill();
    const auto down = bench.create(**ledger, example_entry(1));
    EXPECT_EQ(down.outcome, Outcome::failed);
    EXPECT_THAT(down.sentence,
                testing::MatchesRegex("etcd 127.0.0.1:[0-9]+: .*; check that etcd runs there, or "
                                      "choose another with --ledger=etcd:HOST:PORT,…"));
    EXPECT_THAT(bench.read(**ledger, 0).error().sentence(), HasSubstr("Connection refused"));
    server->start();
    EXPECT_EQ(create_until_known(**ledger, example_entry(1)).outcome, Outcome::won);
    EXPECT_THAT(*bench.read(**ledger, 0), ElementsAre(example_entry(0), example_entry(1)));
}

// A frozen server takes the request and does not answer: nobody knows whether the entry will be
// written. When the server goes on, the writer's own random number tells.
TEST_F(LedgerEtcdTest, FindsTheTruthAfterAFrozenServer) {
    const auto ledger = direct({server->port()});
    ASSERT_EQ(create_until_known(*ledger, example_entry(0)).outcome, Outcome::won);
    server->freeze();
    const auto silent = bench.create(*ledger, example_entry(1, 7));
    EXPECT_EQ(silent.outcome, Outcome::failed);
    EXPECT_THAT(silent.sentence, HasSubstr("no answer within 1.0 s"));
    server->go_on();
    EXPECT_EQ(create_until_known(*ledger, example_entry(1, 7)).outcome, Outcome::won);
    // Another writer of the same entry has lost.
    const auto other = bench.create(*ledger, example_entry(1, 8));
    EXPECT_EQ(other.outcome, Outcome::lost);
    EXPECT_EQ(other.entry, example_entry(1, 7));
}

// The server is killed again and again while two writers race for each entry. Every entry has one
// winner, and both writers know which. Two winners would be two leaders of one job.
TEST_F(LedgerEtcdTest, EachEntryHasOneWriterWhateverIsKilled) {
    const auto first = direct({server->port()}), second = direct({server->port()});
    for (int n = 0; n < 12; ++n) {
        std::optional<LedgerCreated> a, b;
        first->create(example_entry(n, 2 * n), [&](LedgerCreated c) { a = std::move(c); });
        second->create(example_entry(n, 2 * n + 1), [&](LedgerCreated c) { b = std::move(c); });
        // Kills at another moment each time: before, while or after the requests arrive.
        for (int steps = 0; steps < n; ++steps) {
            bench.loop.restart();
            bench.loop.poll_one();
        }
        server->kill();
        server->start();
        ASSERT_TRUE(run_until(bench.loop, [&] { return a && b; }));
        if (a->outcome == Outcome::failed) a = create_until_known(*first, example_entry(n, 2 * n));
        if (b->outcome == Outcome::failed)
            b = create_until_known(*second, example_entry(n, 2 * n + 1));
        EXPECT_NE(a->outcome, b->outcome) << n;
        EXPECT_EQ(a->entry, b->entry) << n;
    }
}

// An endpoint that is down or frozen is passed, and the one that answered is asked first the next
// time. If none answers, the sentence has each one's reason.
TEST_F(LedgerEtcdTest, AsksTheNextEndpoint) {
    // Nobody listens on port 9.
    const auto past_dead = direct({9, server->port()});
    EXPECT_EQ(create_until_known(*past_dead, example_entry(0)).outcome, Outcome::won);
    EtcdServer frozen;
    frozen.freeze();
    const auto past_frozen = direct({frozen.port(), server->port()});
    EXPECT_EQ(create_until_known(*past_frozen, example_entry(1)).outcome, Outcome::won);
    // Now no endpoint answers: one refuses, one is silent.
    server->kill();
    EXPECT_THAT(bench.create(*past_frozen, example_entry(2)).sentence,
                testing::AllOf(HasSubstr("Connection refused; 127.0.0.1"),
                               HasSubstr("no answer within 1.0 s; check")));
}

// A server accepts connections and never speaks etcd's protocol. The attempt ends in time, and the
// sentence names the port.
TEST_F(LedgerEtcdTest, SaysThatAServerIsNoEtcd) {
    asio::io_context loop;
    // The kernel accepts the connection, and nobody reads from it.
    auto silent = listener(loop);
    const auto ledger = direct({silent.local_endpoint().port()});
    EXPECT_THAT(bench.create(*ledger, example_entry(0)).sentence,
                HasSubstr(std::to_string(silent.local_endpoint().port()) + ": no answer within"));
}

// A job with very many members makes an entry above what etcd takes in one request. The sentence
// names the option of etcd that raises it.
TEST_F(LedgerEtcdTest, SaysThatAnEntryIsTooLarge) {
    EtcdServer small({"--max-request-bytes", "16384"});
    const auto ledger = direct({small.port()});
    LedgerEntry large = example_entry(0);
    // 1000 members are far more than 16 KiB.
    large.assignment.members.resize(1000, large.assignment.members.front());
    // etcd answers; a small entry fits.
    ASSERT_EQ(create_until_known(*ledger, example_end(1)).outcome, Outcome::won);
    EXPECT_THAT(bench.create(*ledger, large).sentence, HasSubstr("--max-request-bytes"));
}

// A full etcd refuses every write. The sentence says what to do about it.
TEST_F(LedgerEtcdTest, SaysThatEtcdIsFull) {
    EtcdServer small({"--quota-backend-bytes", "200000"});
    const auto ledger = direct({small.port()});
    LedgerEntry large = example_entry(0);
    large.assignment.members.resize(500, large.assignment.members.front());
    ASSERT_EQ(create_until_known(*ledger, example_entry(0)).outcome, Outcome::won);
    LedgerCreated created;
    // etcd counts what it has written in batches, so the refusal comes some writes later.
    EXPECT_TRUE(comes_true([&] {
        ++large.number.value;
        created = bench.create(*ledger, large);
        return created.outcome == Outcome::failed;
    }));
    EXPECT_THAT(created.sentence, HasSubstr("compact and defragment it"));
}

// Nothing is moved in etcd, so a name has numbered series. A finished job leaves its series behind,
// a requeued job continues its own, another command gets one of its own, and a successor finds its
// job's by the mark.
TEST_F(LedgerEtcdTest, NamesHaveSeries) {
    const LedgerPlace place = place_at({server->port()});
    {
        const auto first = bench.open(place);
        bench.create(**first, example_entry(0));
        bench.create(**first, example_end(1));
    }
    const auto second = bench.open(place);
    EXPECT_TRUE(bench.lines.has(
        "ddprun/job/2/ in etcd begins; ddprun/job/1/ belongs to a job that has ended"));
    EXPECT_TRUE(bench.read(**second, 0)->empty());
    EXPECT_TRUE((*second)->follows_end());
    bench.create(**second, example_entry(0));
    const auto other = bench.open(place, LedgerBench::owner("other"));
    EXPECT_TRUE(
        bench.lines.has("ddprun/job/3/ in etcd begins; ddprun/job/2/ belongs to another command"));
    EXPECT_TRUE(bench.read(**other, 0)->empty());
    EXPECT_FALSE((*other)->follows_end()) << "that of another command says nothing";
    LedgerEntry entry = example_entry(0);
    entry.command_digest = "other";
    bench.create(**other, entry);
    bench.create(**other, example_end(1));
    const auto third = bench.open(place, LedgerBench::owner("third"));
    EXPECT_FALSE((*third)->follows_end()) << "nor does its end";
    // The command of the second series, after a requeue.
    const auto requeued = bench.open(place, LedgerBench::owner("abc123", 1));
    EXPECT_EQ((*requeued)->mark(), (*second)->mark());
    EXPECT_EQ(bench.read(**requeued, 0)->size(), 1u);
    EXPECT_TRUE(bench.lines.has("continues after entry 0"));
    const auto successor = bench.open(place, LedgerBench::owner("abc123", 0, (*second)->mark()));
    ASSERT_TRUE(successor) << successor.error();
    EXPECT_EQ(bench.read(**successor, 0)->size(), 1u);
    // No series has mark 5.
    EXPECT_EQ(bench.open(place, LedgerBench::owner("abc123", 0, 5)).error().code(),
              ErrorCode::not_found);
}

TEST_F(LedgerEtcdTest, TellsWhoComesLate) {
    tells_who_comes_late(bench, place_at({server->port()}));
}

// Somebody has written a value by hand. It is refused by the name of its key.
TEST_F(LedgerEtcdTest, NamesAnEntryWrittenByHand) {
    const LedgerPlace place = place_at({server->port()});
    const auto ledger = bench.open(place);
    EtcdClient client(bench.loop, place, nullptr);
    bool written = false;
    asio::co_spawn(bench.loop, client.create("ddprun/job/1/entry-000000", "{\"by\": \"hand\"}"),
                   [&](std::exception_ptr, Result<std::string>) { written = true; });
    ASSERT_TRUE(run_until(bench.loop, [&] { return written; }));
    EXPECT_THAT(bench.read(**ledger, 0).error().sentence(),
                HasSubstr("ddprun/job/1/entry-000000 in etcd"));
    // The create finds the key and must not take it for its own entry.
    EXPECT_THAT(bench.create(**ledger, example_entry(0)).sentence,
                HasSubstr("ddprun/job/1/entry-000000 in etcd"));
    EXPECT_THAT(bench.open(place).error().sentence(), HasSubstr("delete it if no job needs it"));
}

// A ledger goes while a silent server is asked. It calls nobody, waits for nobody and keeps no loop
// from ending: a ddprun that ends must not hang on a lost etcd.
TEST_F(LedgerEtcdTest, IsSilentWhenDestroyed) {
    auto ledger = direct({server->port()});
    bench.create(*ledger, example_entry(0));
    server->freeze();
    bool called = false;
    // Two calls: one is asked, the other waits behind it.
    for (int i = 1; i < 3; ++i)
        ledger->create(example_entry(i), [&](LedgerCreated) { called = true; });
    settle(bench.loop);
    ledger.reset();
    bench.loop.restart();
    bench.loop.run();
    EXPECT_FALSE(called);
}

// The loop itself goes while answers are on their way. gRPC's threads must not touch it afterwards;
// the sanitizers see it if they do.
TEST_F(LedgerEtcdTest, LetsGoOfALoopThatEnds) {
    for (int i = 0; i < 20; ++i) {
        LedgerBench own;
        const auto ledger = own.open(place_at({server->port()}));
        ASSERT_TRUE(ledger);
        (*ledger)->create(example_entry(i), [](LedgerCreated) {});
        (*ledger)->read(EntryNumber{0}, [](auto) {});
        // Stops at another moment in each round.
        for (int steps = 0; steps < i; ++steps) {
            own.loop.restart();
            own.loop.poll_one();
        }
    }
}

}  // namespace
}  // namespace ddprun::rendezvous
