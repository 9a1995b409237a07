// Which samples each rank sees, also when the number of ranks changes within an epoch. Pure.
#include "trainer/training/distributed_sampler.h"

#include <gmock/gmock.h>

#include <map>
#include <random>

namespace ddprun::trainer {
namespace {

using testing::ElementsAre;
using Samples = std::vector<std::int64_t>;

DistributedSampler sampler(const SamplerOptions& options, int rank, int world) {
    return DistributedSampler::make(options, rank, world).value();
}

// Lists that torch.utils.data.DistributedSampler 2.15 gives for ten samples, seed 2, epoch 1. A
// program that moves from Python sees the same samples in the same order.
TEST(DistributedSampler, DealsAsPyTorchDoes) {
    // All samples of a rank in epoch 1: a batch of 100 is more than there are.
    auto whole_epoch = [](bool drop, int rank, int world) {
        auto it = sampler({10, 2, true, drop}, rank, world);
        it.next_epoch();
        return it.next(100);
    };
    EXPECT_THAT(whole_epoch(false, 0, 3), ElementsAre(6, 7, 1, 4));
    EXPECT_THAT(whole_epoch(false, 2, 3), ElementsAre(3, 5, 2, 0));
    EXPECT_THAT(whole_epoch(true, 0, 3), ElementsAre(6, 7, 1));
    EXPECT_THAT(whole_epoch(true, 2, 3), ElementsAre(3, 5, 2));
    // More ranks than samples.
    EXPECT_THAT(whole_epoch(false, 0, 13), ElementsAre(6));
    EXPECT_THAT(whole_epoch(false, 12, 13), ElementsAre(3));
    EXPECT_THAT(whole_epoch(true, 0, 13), ElementsAre());
}

// Without shuffling the order is that of the data, in each epoch. Seven samples for two ranks: the
// last one is sample 0 again, so that both ranks have four.
TEST(DistributedSampler, KeepsTheOrderWhenAsked) {
    auto it = sampler({7, 0, false, false}, 1, 2);
    EXPECT_EQ(it.left(), 4);
    EXPECT_THAT(it.next(2), ElementsAre(1, 3));
    EXPECT_THAT(it.next(2), ElementsAre(5, 0));
    EXPECT_THAT(it.next(2), ElementsAre());
    it.next_epoch();
    EXPECT_EQ(it.position(), (SamplerPosition{1, 0}));
    EXPECT_THAT(it.next(1), ElementsAre(1));
}

// 2,000 random histories in which the world shrinks and grows between steps, as when nodes are lost
// and come back. Each sample of the epoch comes once. Only at the end some come twice, fewer than
// the last world has ranks, or, with drop_last, as few are missing. In each step all ranks have
// equally many: otherwise one of them would hang in the all-reduce.
TEST(DistributedSampler, LosesAndRepeatsNothingWhenTheWorldChanges) {
    std::mt19937 random(7);
    auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    for (int history = 0; history < 2000; ++history) {
        const SamplerOptions options{1 + below(200), random(), below(2) == 0, below(2) == 0};
        SamplerPosition position{below(5), 0};
        std::map<std::int64_t, int> seen;
        std::int64_t padded = 0, dealt = 0;
        int world = 1;
        for (bool over = false; !over;) {
            world = 1 + below(9);
            const std::int64_t batch = 1 + below(8);
            const std::int64_t before = position.consumed;
            Samples first;
            for (int rank = 0; rank < world; ++rank) {
                auto it = sampler(options, rank, world);
                // Each step is a resume from the position, as after a restart with another world
                // size.
                ASSERT_TRUE(it.resume({position.epoch, before}));
                const Samples mine = it.next(batch);
                if (rank == 0) first = mine;
                ASSERT_EQ(mine.size(), first.size()) << "history " << history;
                for (auto sample : mine) ++seen[sample];
                dealt += static_cast<std::int64_t>(mine.size());
                if (rank == world - 1) position = it.position();
            }
            over = first.empty();
        }
        padded = dealt - static_cast<std::int64_t>(seen.size());
        if (options.drop_last) {
            EXPECT_EQ(padded, 0) << "history " << history;
            // Fewer than a world has ranks, of which there are at most 9.
            EXPECT_LT(options.samples - dealt, 9) << "history " << history;
        } else {
            EXPECT_EQ(static_cast<std::int64_t>(seen.size()), options.samples);
            EXPECT_LT(padded, 9) << "history " << history;
        }
        for (const auto& [sample, times] : seen) {
            ASSERT_GE(sample, 0);
            ASSERT_LT(sample, options.samples);
            EXPECT_LE(times, options.drop_last ? 1 : 1 + 9 / options.samples + 1);
        }
    }
}

// A position outside of the data set probably belongs to another data set. The error has its
// numbers, and the sampler stays where it is.
TEST(DistributedSampler, RefusesWhatCannotBe) {
    EXPECT_FALSE(DistributedSampler::make({0}, 0, 1));
    EXPECT_FALSE(DistributedSampler::make({5}, 2, 2));
    auto it = sampler({5}, 0, 1);
    auto done = it.resume({0, 6});
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error().sentence(), testing::HasSubstr("6 in epoch 0"));
    EXPECT_FALSE(it.resume({-1, 0}));
    EXPECT_EQ(it.position(), (SamplerPosition{0, 0}));
}

}  // namespace
}  // namespace ddprun::trainer
