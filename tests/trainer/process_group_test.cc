#include "trainer/process_group.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "tests/trainer/ranks.h"
#include "trainer/snapshot_manifest.h"

namespace ddprun::trainer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Ends;
using test::run_ranks;

// A rank's group, its errors as exceptions: what a rank's body in these tests wants.
struct Rank {
    explicit Rank(const Context& context, milliseconds timeout = seconds(10))
        : store(connect_store(context, seconds(10)).value()),
          group(make_process_group(context, *store, {Backend::gloo, timeout, {}}).value()) {}
    std::unique_ptr<Store> store;
    std::unique_ptr<ProcessGroup> group;
};

template <class T>
bool reduces(ProcessGroup& group, ReduceOp op, double expected) {
    std::vector<T> values(1001, static_cast<T>(group.rank() + 1));
    if (!group.all_reduce(buffer_of(std::span<T>(values)), op)) return false;
    return std::all_of(values.begin(), values.end(),
                       [&](T v) { return static_cast<double>(v) == expected; });
}

// Three ranks hold 1, 2, 3: sum, average, least and greatest, in each type.
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

// Each rank is the root once; odd sizes, none at all, and a barrier between.
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

// Sums of numbers that round are the same bits on all ranks and in a second run.
TEST(ProcessGroup, GivesTheSameBitsOnAllRanksAndInEachRun) {
    test::TemporaryFolder folder;
    for (int run = 0; run < 2; ++run) {
        auto ends = run_ranks(4, [&](const Context& context) {
            Rank me(context);
            std::vector<float> values(300'001);
            for (std::size_t i = 0; i < values.size(); ++i) {
                values[i] =
                    std::sin(static_cast<float>(i) * static_cast<float>(me.group->rank() + 1));
            }
            if (!me.group->all_reduce(buffer_of(std::span(values)))) return 1;
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

// Two ranks bring buffers of unequal size: both are told who and what, before data move, and no
// process dies.
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

// One rank has agreed on a shape earlier, the other brings a new one: no process dies, both end at
// the time-out.
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

// A rank is killed while the others wait in an all-reduce: they all fail, long before their
// time-out.
TEST(ProcessGroup, NoticesADeadRank) {
    auto ends = run_ranks(
        4,
        [](const Context& context) {
            Rank me(context, seconds(60));
            std::vector<float> values(100'000);
            if (!me.group->all_reduce(buffer_of(std::span(values)))) return 1;
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

// A rank that stands still: the others end at the group's time-out with an error that says so.
TEST(ProcessGroup, TimesOut) {
    auto ends = run_ranks(2, [](const Context& context) {
        Rank me(context, milliseconds(500));
        if (context.rank.value == 1) {
            // Waits until rank 0 has had its time-out.
            return me.store->get("over", seconds(10)) ? 0 : 1;
        }
        auto done = me.group->barrier();
        (void)me.store->set("over", "1");
        (void)me.store->add("flush", 1);
        if (done) return 2;
        std::fprintf(stderr, "%s\n", done.error().sentence().c_str());
        return done.error().code() == ErrorCode::timed_out ? 0 : 3;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// abort() from another thread wakes a rank out of a collective whose partner never joins.
TEST(ProcessGroup, IsAbortedFromAnotherThread) {
    auto ends = run_ranks(
        2,
        [](const Context& context) {
            Rank me(context, seconds(60));
            if (!me.group->barrier()) return 1;
            if (!context.is_first()) return me.store->get("failed", seconds(15)) ? 0 : 2;
            std::thread aborter([&] { me.group->abort(); });
            const bool failed = !me.group->barrier();
            aborter.join();
            (void)me.store->set("failed", "1");
            return failed && me.store->add("flush", 1) ? 0 : 3;
        },
        seconds(20));
    EXPECT_EQ(ends, Ends({0, 0}));
}

// A rank that never comes is named.
TEST(ProcessGroup, NamesTheRankThatDoesNotCome) {
    auto ends = run_ranks(2, [](const Context& context) {
        if (!context.is_first()) return 0;
        auto store = connect_store(context, seconds(10)).value();
        auto group = make_process_group(context, *store, {Backend::gloo, milliseconds(400), {}});
        return !group && group.error().sentence().find("rank 1 did not come") != std::string::npos
                   ? 0
                   : 1;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// Without a GPU, "automatic" is Gloo on all ranks and NCCL on demand is refused with the reason.
TEST(ProcessGroup, ChoosesTheSameBackendOnAllRanks) {
    auto ends = run_ranks(2, [](const Context& context) {
        auto store = connect_store(context, seconds(10)).value();
        std::string note;
        auto chosen = make_process_group(
            context, *store, {Backend::automatic, seconds(10), [&](auto& t) { note = t; }});
        if (!chosen) return 1;
        return std::string((*chosen)->backend()) == "nccl" || note.starts_with("using Gloo: ") ? 0
                                                                                               : 2;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// A caller's mistakes are refused and leave the group alive; a world of one needs no network at
// all.
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

}  // namespace
}  // namespace ddprun::trainer
