// The process group over Gloo: results, order, wrong calls, and above all failures. Each rank is a
// real process on loopback. A rank that dies, hangs or makes another call must end as an error with
// names on all other ranks, soon, and never as a hang.
#include "trainer/backend/make_process_group.h"
#include "trainer/gloo/process_group_gloo.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "rendezvous/store/store_thread.h"
#include "tests/trainer/group_rank.h"
#include "trainer/snapshot/snapshot_manifest.h"

namespace ddprun::trainer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Ends;
using test::run_ranks;

using Rank = test::GroupRank;

// 1001 elements, which three ranks cannot divide evenly. Rank r holds r + 1.
template <class T>
bool reduces(ProcessGroup& group, ReduceOp op, double expected) {
    std::vector<T> values(1001, static_cast<T>(group.rank() + 1));
    if (!group.all_reduce(buffer_of(std::span<T>(values)), op)) return false;
    return std::all_of(values.begin(), values.end(),
                       [&](T v) { return static_cast<double>(v) == expected; });
}

// Three ranks hold 1, 2 and 3: sum, average, least and greatest, in each type.
TEST(ProcessGroup, Reduces) {
    auto ends = run_ranks(3, [](const Context& context) {
        Rank me(context);
        auto& g = *me.group;
        const bool sums = reduces<float>(g, ReduceOp::sum, 6) &&
                          reduces<double>(g, ReduceOp::sum, 6) &&
                          reduces<std::int32_t>(g, ReduceOp::sum, 6) &&
                          reduces<std::int64_t>(g, ReduceOp::sum, 6);
        const bool averages =
            reduces<float>(g, ReduceOp::avg, 2) && reduces<double>(g, ReduceOp::avg, 2);
        const bool ends = reduces<float>(g, ReduceOp::min, 1) &&
                          reduces<double>(g, ReduceOp::max, 3) &&
                          reduces<std::int32_t>(g, ReduceOp::max, 3) &&
                          reduces<std::int64_t>(g, ReduceOp::min, 1);
        return sums && averages && ends ? 0 : 1;
    });
    EXPECT_EQ(ends, Ends({0, 0, 0}));
}

// Each rank is the root once. Buffers of an odd size, and at last one without any element.
TEST(ProcessGroup, BroadcastsFromEachRoot) {
    auto ends = run_ranks(4, [](const Context& context) {
        Rank me(context);
        for (int root = 0; root < 4; ++root) {
            std::vector<std::uint8_t> values(7777, static_cast<std::uint8_t>(me.group->rank()));
            if (!me.group->broadcast(buffer_of(std::span(values)), root)) return 1;
            if (values.front() != root || values.back() != root) return 2;
            if (!me.group->barrier()) return 3;
        }
        return me.group->broadcast({}, 0) ? 0 : 4;
    });
    EXPECT_EQ(ends, Ends({0, 0, 0, 0}));
}

// The order of additions changes the last bits of a sum. It is fixed, so all ranks and a second run
// have equal bits. Without this, parameters drift apart, and no resume can be compared.
TEST(ProcessGroup, GivesTheSameBitsOnAllRanksAndInEachRun) {
    test::TemporaryFolder folder;
    for (int run = 0; run < 2; ++run) {
        auto ends = run_ranks(4, [&](const Context& context) {
            Rank me(context);
            std::vector<float> values(300'001);
            for (std::size_t i = 0; i < values.size(); ++i) {
                values[i] =
                    // Numbers whose sums round.
                    std::sin(static_cast<float>(i) * static_cast<float>(me.group->rank() + 1));
            }
            if (!me.group->all_reduce(buffer_of(std::span(values)))) return 1;
            // One file for each run and rank: its checksum.
            const auto name = std::to_string(run) + std::to_string(me.group->rank());
            test::write_all(folder.path() / name, checksum_of(std::as_bytes(std::span(values))));
            return 0;
        });
        ASSERT_EQ(ends, Ends({0, 0, 0, 0}));
    }
    const std::string first = test::read_all(folder.path() / "00");
    for (const char* name : {"01", "02", "03", "10", "11", "12", "13"}) {
        EXPECT_EQ(test::read_all(folder.path() / name), first) << name;
    }
}

// Two ranks bring buffers of unequal size. Gloo itself would end the process. The ranks compare the
// call first, and both get an error with both sizes.
TEST(ProcessGroup, RefusesUnequalSizes) {
    auto ends = run_ranks(2, [](const Context& context) {
        Rank me(context);
        std::vector<float> values(context.is_first() ? 100 : 1'000'000);
        auto done = me.group->all_reduce(buffer_of(std::span(values)));
        if (done || done.error().code() != ErrorCode::refused) return 1;
        const std::string text = done.error().sentence();
        const bool named = text.find("number 1 of 100 F32") != std::string::npos &&
                           text.find("number 1 of 1000000 F32") != std::string::npos;
        // The group is over, and says the same again.
        return named && me.group->barrier().error() == done.error() ? 0 : 2;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// The ranks have agreed on a shape, and then one of them brings another shape. No process dies, and
// both get an error.
TEST(ProcessGroup, SurvivesAnOldShapeAgainstANewOne) {
    auto ends = run_ranks(2, [](const Context& context) {
        Rank me(context, milliseconds(700));
        std::vector<float> values(10), more(100'000);
        if (!me.group->all_reduce(buffer_of(std::span(values)))) return 1;
        return me.group->all_reduce(buffer_of(std::span(context.is_first() ? values : more))) ? 2
                                                                                              : 0;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// A rank is killed while the others wait in an all-reduce. They all fail, long before their
// time-out of 60 s: the test gives them 20. So the restart begins at once.
TEST(ProcessGroup, NoticesADeadRank) {
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
TEST(ProcessGroup, TimesOut) {
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
TEST(ProcessGroup, IsAbortedFromAnotherThread) {
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
TEST(ProcessGroup, NamesTheRankThatDoesNotCome) {
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

// Without a GPU, "automatic" is Gloo on all ranks, and a demand for NCCL is refused with the
// reason. Ranks that chose differently would wait for each other.
TEST(ProcessGroup, ChoosesTheSameBackendOnAllRanks) {
    auto ends = run_ranks(2, [](const Context& context) {
        auto store = connect_store(context, seconds(10)).value();
        std::string note;
        auto chosen = make_process_group(
            context, *store, {Backend::automatic, seconds(10), [&](auto& t) { note = t; }});
        if (!chosen) return 1;
        // A machine with a GPU for each rank: there is nothing to refuse.
        if (std::string((*chosen)->backend()) == "nccl") return 0;
        if (!note.starts_with("using Gloo: rank 0 has no GPU")) return 2;
        // Another part of the store: the ranks' GPUs of the first group are still in this one.
        auto other = store->another("demanded").value();
        auto demanded = make_process_group(context, *other, {Backend::nccl, seconds(10), {}});
        if (demanded || demanded.error().code() != ErrorCode::refused) return 3;
        return test::expects_error(demanded.error(), "rank 0 has no GPU that NCCL can use");
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// NCCL needs a GPU for each rank. Ranks that share one are named with the GPU, and so is a rank
// without any. Each text is a rank's GPU as host/number.
TEST(BackendChoice, NeedsAGpuForEachRank) {
    EXPECT_EQ(choose_backend({"a/0", "a/1", "b/0"}).backend, Backend::nccl);
    const auto shared = choose_backend({"a/0", "a/1", "b/0", "a/1"});
    EXPECT_EQ(shared.backend, Backend::gloo);
    EXPECT_EQ(shared.reason, "ranks 1 and 3 share the GPU a/1");
    EXPECT_EQ(choose_backend({"a/0", ""}).reason, "rank 1 has no GPU that NCCL can use");
}

// A caller's mistake is refused before anything moves, and leaves the group usable. A world of one
// needs no network.
TEST(ProcessGroup, RefusesWrongArguments) {
    Context context;
    Rank me(context);
    std::vector<std::int32_t> values{1, 2};
    EXPECT_FALSE(me.group->all_reduce(buffer_of(std::span(values)), ReduceOp::avg));
    EXPECT_FALSE(me.group->broadcast(buffer_of(std::span(values)), 1));
    EXPECT_FALSE(me.group->all_reduce({nullptr, 3, DataType::float32}));
    EXPECT_TRUE(me.group->all_reduce(buffer_of(std::span(values))));
    EXPECT_EQ(values, (std::vector<std::int32_t>{1, 2}));
}

// Ten calls are begun before the first one is waited for, and a blocking call takes its turn behind
// them: three ranks make 3 of 1, and 9 of the buffer that is summed twice. The handles outlive the
// group.
TEST(ProcessGroup, CarriesOutWhatWasBegunInOrder) {
    auto ends = run_ranks(3, [](const Context& context) {
        auto me = std::make_unique<Rank>(context);
        std::vector<std::vector<float>> values(10, std::vector<float>(5000, 1.0f));
        std::vector<Work> works;
        for (auto& v : values)
            works.push_back(me->group->begin(Operation::all_reduce(buffer_of(std::span(v)))));
        // A blocking call takes its turn behind them.
        if (!me->group->all_reduce(buffer_of(std::span(values[0])))) return 1;
        // The group ends here, and with it everything that was begun.
        me.reset();
        for (const auto& work : works) {
            if (!work.done() || !work.wait() || work.ended().time_since_epoch().count() <= 0)
                return 2;
        }
        return values[0][7] == 9.0f && values[9][4999] == 3.0f ? 0 : 3;
    });
    EXPECT_EQ(ends, Ends({0, 0, 0}));
}

// Calls that were begun may be under way together, but not on one buffer: the second needs the
// result of the first. The whole, its second half and the whole again give factors of 9 and 27.
TEST(ProcessGroup, TakesTurnsOnOneBuffer) {
    auto ends = run_ranks(3, [](const Context& context) {
        Rank me(context);
        std::vector<float> values(200'000, 1.0f);
        const auto whole = std::span(values);
        std::vector<Work> works;
        for (auto part : {whole, whole.subspan(100'000), whole})
            works.push_back(me.group->begin(Operation::all_reduce(buffer_of(part))));
        for (const auto& work : works)
            if (!work.wait()) return 1;
        return values[7] == 9.0f && values[199'999] == 27.0f ? 0 : 2;
    });
    EXPECT_EQ(ends, Ends({0, 0, 0}));
}

// Even and odd ranks form groups of their own, and rank 4 joins none. The parts work side by side,
// can be split again, and leave the whole group usable.
TEST(ProcessGroup, Splits) {
    auto ends = run_ranks(5, [](const Context& context) {
        Rank me(context);
        const int rank = context.rank.value;
        auto part = me.group->split(rank == 4 ? -1 : rank % 2);
        if (!part) return 1;
        if (rank == 4) return *part ? 2 : me.group->barrier() ? 0 : 3;
        if ((*part)->size() != 2 || (*part)->rank() != rank / 2) return 4;
        std::vector<double> sum{static_cast<double>(rank)};
        if (!(*part)->all_reduce(buffer_of(std::span(sum)))) return 5;
        if (sum[0] != (rank % 2 ? 4 : 2)) return 6;
        auto again = (*part)->split(0);
        if (!again || !(*again)->all_reduce(buffer_of(std::span(sum)))) return 7;
        if (sum[0] != (rank % 2 ? 8 : 4)) return 8;
        return me.group->barrier() ? 0 : 9;
    });
    EXPECT_EQ(ends, Ends({0, 0, 0, 0, 0}));
}

// Ranks that call different things (round 0), or the same with another type (round 1): a usual
// mistake after an `if (rank == 0)`. Both get an error that has both calls.
TEST(ProcessGroup, TellsWhoDisagrees) {
    auto ends = run_ranks(2, [](const Context& context) {
        for (int round = 0; round < 2; ++round) {
            GroupOptions options{Backend::gloo, seconds(10), {}};
            auto store = connect_store(context, seconds(10)).value();
            // A failed group stays failed, so each round has its own group in its own part of the
            // store.
            auto own = store->another("round" + std::to_string(round)).value();
            auto group = make_gloo_group(context, std::move(own), options).value();
            std::vector<float> floats(8);
            std::vector<std::int32_t> ints(8);
            const Buffer mine = context.is_first() || round == 0 ? buffer_of(std::span(floats))
                                                                 : buffer_of(std::span(ints));
            if (!group->barrier()) return 1;
            auto done = context.is_first() || round == 1 ? group->all_reduce(mine, ReduceOp::max)
                                                         : group->broadcast(mine, 1);
            if (done || done.error().code() != ErrorCode::refused) return 2;
            const std::string text = done.error().sentence();
            const auto* words = round == 0
                                    ? "broadcast number 2 of 8 F32 (32 bytes), root 1"
                                    : "all_reduce number 2 of 8 I32 (32 bytes), operator max";
            if (text.find(words) == std::string::npos) return 3;
            if (text.find("all_reduce number 2 of 8 F32 (32 bytes), operator max") ==
                std::string::npos)
                return 4;
        }
        return 0;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// A message between two ranks has another size than the receiver expects. It is refused there,
// before data are written, and the sender learns of it.
TEST(ProcessGroup, RefusesAMessageOfAnotherSize) {
    auto ends = run_ranks(2, [](const Context& context) {
        Rank me(context, seconds(20));
        std::vector<float> values(context.is_first() ? 10 : 2'000'000);
        auto done = context.is_first() ? me.group->receive(buffer_of(std::span(values)), 1)
                                       : me.group->send(buffer_of(std::span(values)), 0);
        if (done) return 1;
        return test::expects_error(done, "rank 1 sends 2000000 F32, this rank expects 10 F32");
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// Ranks 1 and 3 do not come to a monitored barrier. All others name both, although a plain barrier
// would only show that somebody is missing.
TEST(ProcessGroup, NamesWhoIsAbsentFromAMonitoredBarrier) {
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

// A store that notes for which keys this rank waits.
class Eavesdropper : public Store {
  public:
    Eavesdropper(std::unique_ptr<Store> store, std::vector<std::string>& waited)
        : store_(std::move(store)), waited_(waited) {}
    Result<void> set(const std::string& key, const std::string& value) override {
        return store_->set(key, value);
    }
    Result<std::string> get(const std::string& key, milliseconds timeout) override {
        waited_.push_back(key);
        return store_->get(key, timeout);
    }
    Result<std::int64_t> add(const std::string& key, std::int64_t delta) override {
        return store_->add(key, delta);
    }
    Result<std::unique_ptr<Store>> another(const std::string& folder) const override {
        auto store = store_->another(folder);
        if (!store) return store.error();
        return std::unique_ptr<Store>(new Eavesdropper(std::move(*store), waited_));
    }

  private:
    const std::unique_ptr<Store> store_;
    std::vector<std::string>& waited_;
};

// After a failure each rank writes where it was, and the others read it for their error. A dead
// rank writes nothing, so waiting for it would only delay the restart. It is named as missing at
// once.
TEST(ProcessGroup, DoesNotWaitForTheWordOfADeadRank) {
    auto ends = run_ranks(
        3,
        [](const Context& context) {
            // Used by one thread at a time.
            std::vector<std::string> waited;
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
                return std::count(waited.begin(), waited.end(), "group/at/" + key) > 0;
            };
            if (was_asked("2") || !was_asked("0") || !was_asked("1")) return 4;
            return test::expects_error(done, "missing: rank 2");
        },
        seconds(30));
    EXPECT_EQ(ends, Ends({0, 0, -SIGKILL}));
}

// The leader's node is lost, and with it rank 0 and the store. The other ranks fail and end, long
// before they would give up looking for a store.
TEST(ProcessGroup, EndsAtOnceWhenTheStoreDiesWithRankZero) {
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
TEST(ProcessGroup, NoticesAnAbortBehindAHungRank) {
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

// Rank 0 destroys its group while rank 2 still waits for rank 1. An orderly end is no death, so the
// others finish what they are at.
TEST(ProcessGroup, LetsARankLeaveInOrder) {
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
