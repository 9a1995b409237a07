// The real code of a ledger in etcd, with its client, on a cluster that fails (simulated_etcd.h).
// What is promised: ledger_promises.h.
//
// DDPRUN_SEEDS is the number of seeds (default 40). Requests of several leaders run side by side,
// so a seed may fail in some of its runs only.
#include <functional>
#include <map>
#include <set>

#include "rendezvous/ledger/etcd_client.h"
#include "rendezvous/ledger/ledger_etcd.h"
#include "tests/rendezvous/ledger/ledger_bench.h"
#include "tests/rendezvous/ledger/ledger_promises.h"
#include "tests/rendezvous/ledger/simulated_etcd.h"

namespace ddprun::rendezvous {
namespace {

constexpr auto kPatience = std::chrono::milliseconds{20};  // for one attempt at one member
constexpr int kQuestions = 20;                             // of each leader
constexpr std::uint64_t kMark = 7;

LedgerAccessPointer a_user() {
    auto access = std::make_shared<LedgerAccess>();
    access->user = "job";
    access->password = SecretText("word");
    return access;
}

class SimulatedLedger {
  public:
    SimulatedLedger(SimulatedEtcd& etcd, std::uint64_t seed)
        : random_(seed), etcd_(etcd), place_(etcd.place("ddprun/" + std::to_string(seed))) {
        const bool users = seed % 2 == 0;
        if (users) access_ = a_user();
        etcd_.has_users(users);
        for (int i = 0; i < 3; ++i) leaders_.push_back({open(kPatience)});
    }

    void run(double share) {
        etcd_.fail(random_(), share);
        for (Leader& leader : leaders_) ask(leader);
        EXPECT_TRUE(run_until(loop_, [this] { return busy_ == 0; }));
        etcd_.fail(0, 0);
        const auto ledger = open(std::chrono::seconds{10});
        const int before = promises_.begun();
        bool told = false;
        ledger->read(EntryNumber{0}, [&](const Result<std::vector<LedgerEntry>>& all) {
            ASSERT_TRUE(all) << all.error();
            promises_.stands(*all);
        });
        ledger->look(EntryNumber{0}, [&](const Result<int>& newest) {
            LedgerPromises::looked(before, newest);
            told = true;
        });
        EXPECT_TRUE(run_until(loop_, [&] { return told; }));
    }
    int won() const { return promises_.won(); }

  private:
    struct Leader {
        std::unique_ptr<Ledger> ledger;
        std::int64_t known = 0;  // entries
        int restart = 0;
        int asked = 0;
    };

    std::unique_ptr<Ledger> open(Duration patience) {
        return std::make_unique<LedgerEtcd>(
            loop_, std::make_unique<EtcdClient>(loop_, place_, access_, patience), access_,
            place_.path + "/1/", kMark);
    }

    // One question after the other. A create that failed is repeated with another entry, as a
    // leader does that was in doubt and has decided anew.
    void ask(Leader& leader) {
        if (leader.asked == 0) ++busy_;
        if (++leader.asked > kQuestions || testing::Test::HasFailure()) {
            --busy_;
            return;
        }
        const std::uint64_t what = random_() % 5;
        if (what < 2) return read(leader);
        if (what < 4) return create(leader);
        look(leader);
    }

    void read(Leader& leader) {
        leader.ledger->read(EntryNumber{0}, [this, &leader](const auto& found) {
            if (found) {
                promises_.saw(*found);
                leader.known = static_cast<std::int64_t>(found->size());
            }
            ask(leader);
        });
    }

    void create(Leader& leader) {
        const LedgerEntry entry = promises_.propose(leader.known, leader.restart);
        leader.ledger->create(entry, [this, &leader, entry](const LedgerCreated& created) {
            promises_.answered(entry, created);
            if (created.outcome != Outcome::failed) leader.known = created.entry.number.value + 1;
            ask(leader);
        });
    }

    void look(Leader& leader) {
        const int before = promises_.begun();
        leader.ledger->look(EntryNumber{0}, [this, &leader, before](const Result<int>& newest) {
            LedgerPromises::looked(before, newest);
            ask(leader);
        });
    }

    std::mt19937_64 random_;
    SimulatedEtcd& etcd_;
    asio::io_context loop_;
    const LedgerPlace place_;
    LedgerAccessPointer access_;
    LedgerPromises promises_{random_};
    std::vector<Leader> leaders_;
    int busy_ = 0;
};

TEST(LedgerEtcdSimulated, KeepsItsPromisesOnAFailingCluster) {
    const std::uint64_t seeds = ledger_seeds(40);
    SimulatedEtcd etcd;
    int won = 0;
    for (std::uint64_t seed = 1; seed <= seeds && !HasFailure(); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        SimulatedLedger ledger(etcd, seed);
        ledger.run(seed % 3 == 0 ? 0.3 : 0.1);
        won += ledger.won();
    }
    EXPECT_GT(won, static_cast<int>(seeds)) << "most creates fail, so nothing was tried";
    const SimulatedEtcd::Counts counts = etcd.counts();
    for (const int count : {counts.refused, counts.lost, counts.silent, counts.late})
        EXPECT_GT(count, 0);
    EXPECT_GT(counts.forgotten, 0);
}

// Several nodes begin ledgers of two commands at the same moment, again and again after an end. All
// of one command find the same one, and never that of the other.
TEST(LedgerEtcdSimulated, ACommandHasOneSeries) {
    const std::uint64_t seeds = ledger_seeds(40);
    SimulatedEtcd etcd;
    for (std::uint64_t seed = 1; seed <= seeds && !HasFailure(); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        asio::io_context loop;
        const LedgerPlace place = etcd.place("ddprun/opened" + std::to_string(seed));
        std::map<std::string, std::set<std::uint64_t>> marks;
        int waiting = 6;
        std::function<void(std::string)> open = [&](const std::string& digest) {
            open_ledger_etcd(
                loop, place, nullptr, {digest, 0, {}}, [](const Note&) {},
                [&, digest](OpenedLedger opened) {
                    // It is asked again, as a node does.
                    if (!opened) return open(digest);
                    marks[digest].insert((*opened)->mark());
                    --waiting;
                });
        };
        etcd.fail(seed, 0.2, false);
        for (int i = 0; i < 3; ++i) {
            open("abc123");
            open("other");
        }
        EXPECT_TRUE(run_until(loop, [&] { return waiting == 0; }));
        EXPECT_EQ(marks["abc123"].size(), 1u);
        EXPECT_EQ(marks["other"].size(), 1u);
        EXPECT_NE(marks["abc123"], marks["other"]);
    }
}

// An etcd without users is asked once whether it has any. When it gets some, the user logs in.
TEST(LedgerEtcdSimulated, AsksOnceForAToken) {
    SimulatedEtcd etcd;
    LedgerBench bench;
    const LedgerPlace place = etcd.place("ddprun/users");
    LedgerEtcd ledger(bench.loop, std::make_unique<EtcdClient>(bench.loop, place, a_user()),
                      a_user(), place.path + "/1/", kMark);
    for (int logins = 1; logins <= 2; ++logins) {
        for (int i = 0; i < 3; ++i) EXPECT_TRUE(bench.read(ledger, 0));
        EXPECT_EQ(etcd.counts().logins, logins);
        etcd.has_users(true);
    }
}

}  // namespace
}  // namespace ddprun::rendezvous
