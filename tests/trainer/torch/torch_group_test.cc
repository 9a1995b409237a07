// A rank dies in the middle of collectives of libtorch's Gloo. Without our end to its waits it
// forgets a send now and then, and a rank then waits for the time-out of ten minutes.
#include "trainer/torch/torch_group.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <thread>
#include <vector>

#include "tests/trainer/ranks.h"

namespace ddprun::trainer {
namespace {

using test::Ends;
using test::run_ranks;

std::unique_ptr<ProcessGroup> group_of(const Context& context, Store& store) {
    return make_torch_group(context, store, {Backend::gloo, std::chrono::minutes(10), {}}).value();
}

// How often the deaths below are repeated.
int rounds() { return std::getenv("DDPRUN_LONG") ? 200 : 12; }

// Rank 1 of three is killed by a thread of its own while it makes one all-reduce after the other.
// Its moment is another one in each round: a number of turns of the processor. The others all end
// with an error.
TEST(TorchGroup, EndsWhenARankDiesWithinACall) {
    for (int round = 0; round < rounds(); ++round) {
        auto ends = run_ranks(
            3,
            [round](const Context& context) {
                auto store = connect_store(context, std::chrono::seconds(30)).value();
                auto group = group_of(context, *store);
                std::vector<float> values(300'000);
                std::thread killer;
                if (context.rank.value == 1) {
                    killer = std::thread([round] {
                        volatile long turns = 400'000L * (round % 40);
                        while (turns > 0) turns = turns - 1;
                        raise(SIGKILL);
                    });
                }
                while (group->all_reduce(buffer_of(std::span(values)))) {
                }
                return 0;
            },
            std::chrono::seconds(100));
        EXPECT_EQ(ends, Ends({0, -SIGKILL, 0})) << "round " << round;
    }
}

// The same for a rank that waits to receive from a rank that dies, and for one that sends to it.
TEST(TorchGroup, EndsWhenARankDiesBetweenTwo) {
    auto ends = run_ranks(
        3,
        [](const Context& context) {
            auto store = connect_store(context, std::chrono::seconds(30)).value();
            auto group = group_of(context, *store);
            if (!group->barrier()) return 1;
            if (context.rank.value == 1) raise(SIGKILL);
            std::vector<float> values(3'000'000);
            const Buffer buffer = buffer_of(std::span(values));
            while (context.rank.value == 0 ? group->send(buffer, 1) : group->receive(buffer, 1)) {
            }
            return 0;
        },
        std::chrono::seconds(100));
    EXPECT_EQ(ends, Ends({0, -SIGKILL, 0}));
}

// Two groups on one store at a time, and one after the other: their messages do not meet.
TEST(TorchGroup, SplitsAndEndsInOrder) {
    auto ends = run_ranks(4, [](const Context& context) {
        auto store = connect_store(context, std::chrono::seconds(30)).value();
        auto group = group_of(context, *store);
        auto half = group->split(context.rank.value % 2);
        if (!half) return 1;
        double value[] = {static_cast<double>(context.rank.value)};
        if (!(*half)->all_reduce_values(value)) return 2;
        if (value[0] != (context.rank.value % 2 ? 4 : 2)) return 3;
        half->reset();
        if (!group->barrier()) return 4;
        return 0;
    });
    EXPECT_EQ(ends, Ends({0, 0, 0, 0}));
}

}  // namespace
}  // namespace ddprun::trainer
