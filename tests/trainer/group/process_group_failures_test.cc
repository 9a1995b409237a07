// The process group over Gloo when a rank is lost: it dies, hangs, gives up or never comes. Each
// rank is a real process on loopback. All others must end with an error that has names, soon, and
// never hang.
#include "trainer/backend/make_process_group.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <thread>

#include "store/server/store_thread.h"
#include "tests/trainer/group_rank.h"

namespace ddprun::trainer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Ends;
using test::run_ranks;

using Rank = test::GroupRank;

// A rank is killed while the others wait in an all-reduce. They all fail, long before their
// time-out of 60 s: the test gives them 20. So the restart begins at once.
TEST(ProcessGroupFailures, NoticesADeadRank) {
    auto ends = run_ranks(
        4,
        [](const Context& context) {
            Rank me(context, seconds(60));
            std::vector<float> values(100'000);
            if (!me.group->all_reduce(buffer_of(std::span(values)))) return 1;
            // Rank 2 dies only when all ranks are through the first call, since its death ends the
            // call in which the others are.
            if (!me.say("through" + std::to_string(context.rank.value))) return 4;
            for (int r = 0; r < 4 && context.rank.value == 2; ++r)
                if (!me.hear("through" + std::to_string(r))) return 5;
            if (context.rank.value == 2) raise(SIGKILL);
            auto done = me.group->all_reduce(buffer_of(std::span(values)));
            if (done) return 2;
            return done.error().sentence().find("all_reduce number 2 of 100000 F32") !=
                           std::string::npos
                       ? 0
                       : 3;
        },
        seconds(20));
    EXPECT_EQ(ends, Ends({0, 0, -SIGKILL, 0}));
}

// A rank stands still and does not die, so no connection breaks. The other one ends at the group's
// time-out (0.5 s here) with an error that says so.
TEST(ProcessGroupFailures, TimesOut) {
    auto ends = run_ranks(2, [](const Context& context) {
        Rank me(context, milliseconds(500));
        if (context.rank.value == 1) {
            // Waits until rank 0 has had its time-out.
            return me.store->get("over", seconds(10)) ? 0 : 1;
        }
        auto done = me.group->barrier();
        (void)me.store->set("over", "1");
        // The store answers add(), so the set() before it has arrived.
        (void)me.store->add("flush", 1);
        if (done) return 2;
        std::fprintf(stderr, "%s\n", done.error().sentence().c_str());
        return done.error().code() == ErrorCode::timed_out ? 0 : 3;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// A watchdog of the program gives up: abort() from another thread wakes the rank out of a call that
// its partner never joins.
TEST(ProcessGroupFailures, IsAbortedFromAnotherThread) {
    auto ends = run_ranks(
        2,
        [](const Context& context) {
            Rank me(context, seconds(60));
            if (!me.group->barrier()) return 1;
            // Rank 1 lives on, but never joins the second barrier.
            if (!context.is_first()) return me.say("through") && me.hear("failed") ? 0 : 2;
            if (!me.hear("through")) return 4;
            std::thread aborter([&] { me.group->abort(); });
            const bool failed = !me.group->barrier();
            aborter.join();
            (void)me.store->set("failed", "1");
            return failed && me.store->add("flush", 1) ? 0 : 3;
        },
        seconds(20));
    EXPECT_EQ(ends, Ends({0, 0}));
}

// Rank 1 never joins the group. Its number is in the error, so the operator knows whose log to
// read.
TEST(ProcessGroupFailures, NamesTheRankThatDoesNotCome) {
    auto ends = run_ranks(2, [](const Context& context) {
        if (!context.is_first()) return 0;
        auto store = connect_store(context, seconds(10)).value();
        auto group = make_process_group(context, *store, {Backend::gloo, milliseconds(400), {}});
        return !group && group.error().sentence().find("rank 1 did not join") != std::string::npos
                   ? 0
                   : 1;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// A part of the job counts its ranks from 0. Its errors name the ranks of the job, too, by which
// logs and hosts are found: here who waits, who is absent, and who differs.
TEST(ProcessGroupFailures, NamesTheRanksOfTheJobInAPart) {
    auto ends = run_ranks(4, [](const Context& context) {
        Rank me(context, milliseconds(800));
        const int rank = context.rank.value;
        const auto part = me.group->split(rank % 2).value();
        if (rank % 2 == 0) {
            // Ranks 0 and 2 of the job launch different calls.
            std::vector<float> values(rank ? 3 : 4);
            const auto done = part->all_reduce(buffer_of(std::span(values)));
            if (done) return 1;
            // Rank 0 sees the difference itself, or that rank 2 has seen it.
            return test::expects_error(
                done.error(), rank ? "rank 1 of 2 (rank 2 of the job): " : "(rank 2 of the job)");
        }
        // Rank 3 does not come before rank 1 has given up.
        if (rank == 3) return me.hear("over") ? 0 : 2;
        const auto done = part->monitored_barrier();
        if (!me.say("over") || done) return 3;
        if (int wrong = test::expects_error(done.error(), "rank 0 of 2 (rank 1 of the job): "))
            return wrong;
        return test::expects_error(done.error(),
                                   "rank 1 (rank 3 of the job) did not reach the barrier");
    });
    EXPECT_EQ(ends, Ends({0, 0, 0, 0}));
}

// Ranks 1 and 3 do not come to a monitored barrier. All others name both, although a plain barrier
// would only show that somebody is missing.
TEST(ProcessGroupFailures, NamesWhoIsAbsentFromAMonitoredBarrier) {
    auto ends = run_ranks(4, [](const Context& context) {
        Rank me(context, milliseconds(800));
        if (!me.group->monitored_barrier()) return 1;
        // The absent ranks live until the others have failed: absence is tested here, not death.
        if (context.rank.value % 2) return me.hear("over0") && me.hear("over2") ? 0 : 2;
        auto done = me.group->monitored_barrier();
        if (!me.say("over" + std::to_string(context.rank.value)) || done) return 3;
        return test::expects_error(done, "ranks 1 and 3 did not reach the barrier within 800 ms");
    });
    EXPECT_EQ(ends, Ends({0, 0, 0, 0}));
}

// The keys for which a rank has waited. The group waits with several threads while it connects.
struct Waited {
    std::mutex mutex;
    std::vector<std::string> keys;
};

// A store that notes for which keys this rank waits.
class Eavesdropper : public Store {
  protected:
    const Store& inner() const { return *store_; }
    Waited& waited() const { return waited_; }

  public:
    Eavesdropper(std::unique_ptr<Store> store, Waited& waited)
        : store_(std::move(store)), waited_(waited) {}
    Result<void> set(const std::string& key, const std::string& value) override {
        return store_->set(key, value);
    }
    Result<std::string> get(const std::string& key, milliseconds timeout) override {
        {
            std::lock_guard lock(waited_.mutex);
            waited_.keys.push_back(key);
        }
        return store_->get(key, timeout);
    }
    Result<std::int64_t> add(const std::string& key, std::int64_t delta) override {
        return store_->add(key, delta);
    }
    Result<void> remove(const std::string& key) override { return store_->remove(key); }
    Result<std::unique_ptr<Store>> another(const std::string& folder) const override {
        auto store = store_->another(folder);
        if (!store) return store.error();
        return std::unique_ptr<Store>(new Eavesdropper(std::move(*store), waited_));
    }

  private:
    const std::unique_ptr<Store> store_;
    Waited& waited_;
};

// After a failure each rank writes where it was, and the others read it for their error. A dead
// rank writes nothing, so waiting for it would only delay the restart. It is named as missing at
// once.
TEST(ProcessGroupFailures, DoesNotWaitForTheWordOfADeadRank) {
    auto ends = run_ranks(
        3,
        [](const Context& context) {
            Waited waited;
            Eavesdropper store(connect_store(context, seconds(10)).value(), waited);
            auto group = make_process_group(context, store, {Backend::gloo, seconds(60), {}});
            std::vector<float> values(1000);
            if (!group || !(*group)->all_reduce(buffer_of(std::span(values)))) return 1;
            if (context.rank.value == 2) {
                // The others are through the first call when rank 2 dies.
                for (const char* word : {"through0", "through1"})
                    if (!store.get(word, seconds(20))) return 2;
                raise(SIGKILL);
            }
            const std::string mine = std::to_string(context.rank.value);
            if (!store.set("through" + mine, "1") || !store.add("said", 1)) return 3;
            const auto done = (*group)->all_reduce(buffer_of(std::span(values)));
            const auto was_asked = [&](const std::string& key) {
                std::lock_guard lock(waited.mutex);
                return std::count(waited.keys.begin(), waited.keys.end(), "group/at/" + key) > 0;
            };
            if (was_asked("2") || !was_asked("0") || !was_asked("1")) return 4;
            return test::expects_error(done, "missing: rank 2");
        },
        seconds(30));
    EXPECT_EQ(ends, Ends({0, 0, -SIGKILL}));
}

// A rank whose other group has failed leaves this one in order. It will say no word either.
TEST(ProcessGroupFailures, DoesNotWaitForTheWordOfARankThatLeft) {
    auto ends = run_ranks(
        2,
        [](const Context& context) {
            Waited waited;
            Eavesdropper store(connect_store(context, seconds(10)).value(), waited);
            auto group = make_process_group(context, store, {Backend::gloo, seconds(60), {}});
            std::vector<float> values(1000);
            if (!group || !(*group)->all_reduce(buffer_of(std::span(values)))) return 1;
            if (context.rank.value == 1) {
                group->reset();
                return 0;
            }
            const auto done = (*group)->all_reduce(buffer_of(std::span(values)));
            for (const char* key : {"group/at/1", "gloo/first_lost"})
                if (std::count(waited.keys.begin(), waited.keys.end(), key) > 0) return 2;
            return test::expects_error(done, "rank 1 has left the group") +
                   test::expects_error(done, "missing: rank 1");
        },
        seconds(30));
    EXPECT_EQ(ends, Ends({0, 0}));
}

// The leader's node is lost, and with it rank 0 and the store. The other ranks fail and end, long
// before they would give up looking for a store.
TEST(ProcessGroupFailures, EndsAtOnceWhenTheStoreDiesWithRankZero) {
    auto ends = run_ranks(
        3,
        [](const Context& given) {
            // The test's own store outlives rank 0: only for telling the ranks what to do, not for
            // the group.
            auto meeting = connect_store(given, seconds(10)).value();
            Context mine = given;
            if (given.rank.value == 0) {
                const test::Listener listener = test::listen_on_loopback();
                // static: it serves until the process is killed.
                static auto server = store::StoreThread::start(listener.fd, {});
                if (!meeting->set("port", std::to_string(listener.port))) return 1;
            }
            mine.master_port =
                static_cast<std::uint16_t>(std::stoi(meeting->get("port", seconds(20)).value()));
            Rank me(mine, seconds(60));
            std::vector<float> values(1000);
            if (!me.group->all_reduce(buffer_of(std::span(values)))) return 2;
            const std::string name = "rank" + std::to_string(given.rank.value);
            if (!meeting->set(name, "through") || !meeting->add("through", 1)) return 3;
            for (int r = 1; r < 3 && given.rank.value == 0; ++r)
                if (!meeting->get("rank" + std::to_string(r), seconds(20))) return 4;
            if (given.rank.value == 0) raise(SIGKILL);
            return me.group->all_reduce(buffer_of(std::span(values))) ? 5 : 0;
        },
        seconds(20));
    EXPECT_EQ(ends, Ends({-SIGKILL, 0, 0}));
}

// Rank 2 waits for rank 1, which computes forever; rank 0 dies, or gives up. Rank 2 learns it at
// once, although nothing came from rank 1 and its own time-out is ten minutes away. Otherwise each
// failure next to a hang would cost the whole time-out.
TEST(ProcessGroupFailures, NoticesAnAbortBehindAHungRank) {
    for (bool killed : {true, false}) {
        auto ends = run_ranks(
            3,
            [&](const Context& context) {
                Rank me(context, std::chrono::minutes(10));
                std::vector<float> values(1000);
                if (!me.group->barrier()) return 1;
                // Plays the computation: it answers nobody until rank 2 has its error.
                if (context.rank.value == 1) return me.say("computing") && me.hear("over") ? 0 : 2;
                if (context.rank.value == 0) {
                    if (!me.hear("waiting") || !me.hear("computing")) return 3;
                    if (killed) (void)raise(SIGKILL);
                    me.group->abort();
                    return 0;
                }
                if (!me.say("waiting")) return 4;
                auto done = me.group->receive(buffer_of(std::span(values)), 1);
                if (!me.say("over") || done) return 5;
                return test::expects_error(done, "connection to rank 0 was closed");
            },
            seconds(20));
        EXPECT_EQ(ends, Ends({killed ? -SIGKILL : 0, 0, 0}));
    }
}

// Two calls of shapes that the ranks have agreed on come in another order on rank 1. Each waits for
// messages that never come; they find out long before the time-out of 60 s what each waits for.
TEST(ProcessGroupFailures, FindsAnotherOrderBeforeTheTimeout) {
    auto ends = run_ranks(
        2,
        [](const Context& context) {
            Rank me(context, seconds(60));
            std::vector<float> few(10), many(20);
            for (int i = 0; i < 3; ++i)
                if (!me.group->all_reduce(buffer_of(std::span(few))) ||
                    !me.group->all_reduce(buffer_of(std::span(many))))
                    return 1;
            auto& first = context.is_first() ? few : many;
            const auto done = me.group->all_reduce(buffer_of(std::span(first)));
            if (done || done.error().code() != ErrorCode::refused) return 2;
            return test::expects_error(done, "calls all_reduce number 7 of");
        },
        seconds(20));
    EXPECT_EQ(ends, Ends({0, 0}));
}

// Only the caller differs. The ranks compare the first calls of each caller, also after many calls
// of the same shape.
// Two ranks call two groups in opposite orders. Each waits in another group than the other one, and
// the time-out says in which.
TEST(ProcessGroupFailures, NamesTheOtherGroupInWhichARankWaits) {
    auto ends = run_ranks(2, [](const Context& context) {
        test::GroupRank me(context, seconds(6));
        auto one = me.group->split(0).value(), two = me.group->split(0).value();
        std::vector<float> values(10);
        const bool first = context.rank.value == 0;
        const auto done = (first ? one : two)->all_reduce(buffer_of(std::span(values)));
        return test::expects_error(
            done, first ? "; rank 1 waits in all_reduce number 1 of 10 F32 (40 bytes) in color 0 "
                          "of split 2: all ranks must call their groups in the same order; with "
                          "GroupOptions::checked_launches"
                        : "; rank 0 waits in all_reduce number 1 of 10 F32 (40 bytes) in color 0 "
                          "of split 1: all ranks");
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

TEST(ProcessGroupFailures, ComparesTheFirstCallsOfEachCaller) {
    auto ends = run_ranks(2, [](const Context& context) {
        Rank me(context);
        std::vector<float> values(10);
        const auto operation = Operation::broadcast(buffer_of(std::span(values)));
        for (int i = 0; i < 100; ++i)
            if (!me.group->call(operation.of("parameters"))) return 1;
        const auto done = me.group->call(operation.of(context.is_first() ? "a" : "b"));
        if (done || done.error().code() != ErrorCode::refused) return 2;
        return test::expects_error(done, "number 101 of 10 F32 (40 bytes) for a");
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// Also in a world of one, and also calls that would move nothing.
TEST(ProcessGroupFailures, ForbidsEachCallAfterAnAbort) {
    for (int world : {1, 2}) {
        auto ends = run_ranks(world, [](const Context& context) {
            Rank me(context);
            std::vector<float> values(10);
            if (!me.group->barrier()) return 1;
            // An abort ends the barrier of the other rank, too.
            if (!me.say("through" + std::to_string(context.rank.value))) return 2;
            for (int r = 0; r < context.world_size; ++r)
                if (!me.hear("through" + std::to_string(r))) return 3;
            me.group->abort();
            const auto done = me.group->begin(Operation::all_reduce(buffer_of(std::span(values))));
            if (int wrong = test::expects_error(done.wait(), "the group was aborted")) return wrong;
            return test::expects_error(me.group->split(0).error(), "the group was aborted");
        });
        EXPECT_EQ(ends, Ends(static_cast<std::size_t>(world), 0));
    }
}

// A store in which no group can be split.
class NoSplit final : public Eavesdropper {
  public:
    using Eavesdropper::Eavesdropper;
    Result<std::unique_ptr<Store>> another(const std::string& folder) const override {
        if (folder.starts_with("split/")) return Error(ErrorCode::unavailable, "no room for it");
        Waited& keys = waited();
        auto store = inner().another(folder);
        if (!store) return store.error();
        return std::unique_ptr<Store>(new NoSplit(std::move(*store), keys));
    }
};

// Rank 1 cannot make its part. The others, which wait for it, end at once: not after their time-out
// of 60 s.
TEST(ProcessGroupFailures, EndsASplitThatFailsOnOneRank) {
    auto ends = run_ranks(
        3,
        [](const Context& context) {
            Waited waited;
            auto store = connect_store(context, seconds(10)).value();
            if (context.rank.value == 1)
                store = std::make_unique<NoSplit>(std::move(store), waited);
            auto group = make_process_group(context, *store, {Backend::gloo, seconds(60), {}});
            if (!group) return 1;
            const auto part = (*group)->split(0);
            if (part || (*group)->barrier()) return 2;
            return test::expects_error(part.error(),
                                       "rank 1 of 3: split number 1 failed: no room for it");
        },
        seconds(20));
    EXPECT_EQ(ends, Ends({0, 0, 0}));
}

// Rank 0 destroys its group while rank 2 still waits for rank 1. An orderly end is no death, so the
// others finish what they are at.
TEST(ProcessGroupFailures, LetsARankLeaveInOrder) {
    auto ends = run_ranks(3, [](const Context& context) {
        Rank me(context, seconds(20));
        std::vector<float> values(1000, 5.0f);
        if (!me.group->barrier()) return 1;
        if (context.rank.value == 0) {
            // An orderly end sends a goodbye to the other ranks.
            me.group.reset();
            return me.say("left") && me.hear("got it") ? 0 : 2;
        }
        if (context.rank.value == 1) {
            if (!me.hear("left")) return 3;
            if (!me.group->send(buffer_of(std::span(values)), 2)) return 4;
            return me.hear("got it") ? 0 : 5;
        }
        std::vector<float> got(1000);
        auto done = me.group->receive(buffer_of(std::span(got)), 1);
        return me.say("got it") && done && got == values ? 0 : 6;
    });
    EXPECT_EQ(ends, Ends({0, 0, 0}));
}

}  // namespace
}  // namespace ddprun::trainer
