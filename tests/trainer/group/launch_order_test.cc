// The order in which ranks launch the calls of a group and of its splits. Each rank is a real
// process on loopback. Nothing here may wait for the group's time-out of 60 s.
#include "trainer/group/launch_order.h"

#include <gtest/gtest.h>

#include "tests/trainer/group_rank.h"

namespace ddprun::trainer {
namespace {

using std::chrono::seconds;
using test::Ends;
using test::expects_error;
using test::run_ranks;

GroupOptions checked(std::uint64_t launches) {
    GroupOptions options{Backend::gloo, seconds(60), {}};
    options.checked_launches = launches;
    return options;
}

// A grid of two rows and two columns.
struct Checked {
    explicit Checked(const Context& context, std::uint64_t launches = 1000)
        : store(connect_store(context, seconds(10)).value()),
          whole(make_process_group(context, *store, checked(launches)).value()),
          row(whole->split(context.rank.value / 2).value()),
          column(whole->split(context.rank.value % 2).value()) {}

    // Through the store, so that no call of a group is still under way when a rank fails.
    bool meet() {
        const int world = whole->size();
        bool met = store->set("here" + std::to_string(whole->rank()), "1").has_value();
        for (int r = 0; r < world; ++r)
            met = met && store->get("here" + std::to_string(r), seconds(20));
        return met;
    }
    Result<void> add(ProcessGroup& group) { return group.all_reduce(buffer_of(std::span(few))); }
    Work begin(ProcessGroup& group, std::vector<float>& values) {
        return group.begin(Operation::all_reduce(buffer_of(std::span(values))));
    }

    std::unique_ptr<Store> store;
    std::unique_ptr<ProcessGroup> whole, row, column;
    std::vector<float> few = std::vector<float>(10), many = std::vector<float>(100'000);
};

// Blocking calls, calls that were begun, calls between two ranks and a split of a split, in one
// order: nothing is found, and the sums are right. Rows need not keep step with each other.
TEST(LaunchOrder, LetsOneOrderPass) {
    auto ends = run_ranks(4, [](const Context& context) {
        Checked me(context);
        const int rank = context.rank.value;
        me.few[0] = 1;
        for (int i = 0; i < rank / 2 + 1; ++i)
            if (!me.add(*me.row)) return 1;
        for (int i = 0; i < 5; ++i) {
            const auto work = me.begin(*me.column, me.many);
            if (!me.add(*me.row) || !me.add(*me.whole) || !work.wait()) return 2;
            auto done = rank % 2 ? me.row->send(buffer_of(std::span(me.few)), 0)
                                 : me.row->receive(buffer_of(std::span(me.few)), 1);
            if (!done) return 3;
        }
        auto again = me.row->split(0);
        if (!again || !me.add(**again) || !me.add(*me.column) || !me.add(*me.row)) return 4;
        return 0;
    });
    EXPECT_EQ(ends, Ends({0, 0, 0, 0}));
}

// Ranks 0 and 1 share the whole group and a row, and launch a call of each the other way round.
// Blocking, each would wait for the other. The one that comes second names both calls and ends; the
// other one reads the same sentence when it is gone.
TEST(LaunchOrder, NamesTwoRanksThatWouldWaitForEachOther) {
    auto ends = run_ranks(
        4,
        [](const Context& context) {
            Checked me(context);
            if (!me.meet()) return 3;
            const bool other_way = context.rank.value == 1;
            auto done = me.add(other_way ? *me.row : *me.whole);
            if (done) done = me.add(other_way ? *me.whole : *me.row);
            // Rank 3 shares a row only with rank 2, and may be through with it.
            if (done) return context.rank.value < 2 ? 1 : 2;
            if (context.rank.value > 1) return 0;
            if (done.error().code() != ErrorCode::refused) return expects_error(done, "refused");
            const std::string& said = done.error().sentence();
            const bool whole = said.find(" in the whole group") != std::string::npos;
            const bool row = said.find(" in color 0 of split 1") != std::string::npos;
            const bool ranks = said.find("rank 0 ") != std::string::npos &&
                               said.find("rank 1 ") != std::string::npos;
            return whole && row && ranks ? 0 : expects_error(done, "both calls and both ranks");
        },
        seconds(30));
    EXPECT_EQ(ends, Ends({0, 0, 0, 0}));
}

// Calls that were begun come to their end on CPUs in any order, and with NCCL they may not. They
// are refused all the same, on the rank that comes second: here rank 1, which waits for rank 0.
TEST(LaunchOrder, FindsBegunCallsInAnotherOrder) {
    auto ends = run_ranks(
        2,
        [](const Context& context) {
            auto store = connect_store(context, seconds(10)).value();
            auto whole = make_process_group(context, *store, checked(1000)).value();
            auto part = whole->split(0).value();
            std::vector<float> one(10), two(10);
            const auto first = Operation::all_reduce(buffer_of(std::span(one)));
            const auto second = Operation::all_reduce(buffer_of(std::span(two)));
            if (context.is_first()) {
                const Work a = whole->begin(first), b = part->begin(second);
                if (!store->set("begun", "1") || !store->add("flush", 1)) return 1;
                return a.wait() && b.wait() ? 2 : 0;
            }
            if (!store->get("begun", seconds(20))) return 3;
            const auto done = part->begin(second).wait();
            if (done || done.error().code() != ErrorCode::refused) return 4;
            if (part->barrier()) return 5;
            return expects_error(
                done,
                "rank 1 launches all_reduce number 1 of 10 F32 (40 bytes) in color 0 of split 1, "
                "and rank 0 all_reduce number 3 of 10 F32 (40 bytes) in the whole group, as number "
                "3 of the calls");
        },
        seconds(30));
    EXPECT_EQ(ends, Ends({0, 0}));
}

// Only so many launches are compared, and none without the option: the same wrong order passes.
TEST(LaunchOrder, ComparesOnlyTheFirst) {
    for (std::uint64_t launches : {0, 2}) {
        auto ends = run_ranks(2, [launches](const Context& context) {
            auto store = connect_store(context, seconds(10)).value();
            auto whole = make_process_group(context, *store, checked(launches)).value();
            auto part = whole->split(0).value();
            std::vector<float> one(10), two(10);
            auto& first = context.is_first() ? *whole : *part;
            auto& second = context.is_first() ? *part : *whole;
            const Work a = first.begin(Operation::all_reduce(buffer_of(std::span(one))));
            const Work b = second.begin(Operation::all_reduce(buffer_of(std::span(two))));
            return a.wait() && b.wait() ? 0 : 1;
        });
        EXPECT_EQ(ends, Ends({0, 0})) << launches;
    }
}

}  // namespace
}  // namespace ddprun::trainer
