// Which gradients travel together, and when a bucket may be sent. Pure: shapes and order, no
// numbers.
#include "trainer/gradients/gradient_buckets.h"

#include <gmock/gmock.h>

#include <random>

namespace ddprun::trainer {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Parameters of float32 with these numbers of elements.
std::vector<GradientShape> floats(std::initializer_list<std::size_t> counts) {
    std::vector<GradientShape> shapes;
    for (auto count : counts) shapes.push_back({count, DataType::float32});
    return shapes;
}

// Backward computes the last parameter first, so its gradient travels first. The first bucket is
// full at 8 bytes, so that communication begins early, the others at 16. A gradient is never
// divided: the one of 400 bytes makes its bucket larger.
TEST(GradientBuckets, AreFilledFromTheEnd) {
    const auto plan = plan_buckets(floats({100, 2, 2, 3, 1, 1}), 8, 16);
    ASSERT_EQ(plan.buckets.size(), 3u);
    EXPECT_THAT(plan.buckets[0].parameters, ElementsAre(5, 4));
    EXPECT_THAT(plan.buckets[1].parameters, ElementsAre(3, 2));
    EXPECT_THAT(plan.buckets[2].parameters, ElementsAre(1, 0));
}

// One block, in the order of the parameters, each from a multiple of 256 bytes on. A bucket is a
// piece of it, with what is between its gradients.
TEST(GradientBuckets, LieInOneBlockFromAlignedPlaces) {
    const auto plan = plan_buckets(floats({100, 2, 64, 3}), 8, 16);
    EXPECT_EQ(plan.slots[0].offset, 0u);
    EXPECT_EQ(plan.slots[1].offset, 512u);
    EXPECT_EQ(plan.slots[2].offset, 768u);
    EXPECT_EQ(plan.slots[3].offset, 1024u);
    EXPECT_EQ(plan.bytes, 1280u);
    ASSERT_EQ(plan.buckets.size(), 3u);
    EXPECT_EQ(plan.buckets[0].offset, 1024u);
    EXPECT_EQ(plan.buckets[1].offset, 768u);
    EXPECT_EQ(plan.buckets[1].count, 64u);
    EXPECT_EQ(plan.buckets[2].offset, 0u);
    EXPECT_EQ(plan.buckets[2].count, 192u);
}

// Three equal parts of each bucket, whole alignments each: 256 bytes of the first, 512 of the last.
TEST(GradientBuckets, CanBeCutIntoEqualParts) {
    const auto plan = plan_buckets(floats({100, 192, 64, 3}), 8, 16, 3);
    EXPECT_EQ(plan.slots[0].offset, 0u);
    EXPECT_EQ(plan.slots[1].offset, 768u);
    EXPECT_EQ(plan.slots[2].offset, 1536u);
    EXPECT_EQ(plan.slots[3].offset, 2304u);
    ASSERT_EQ(plan.buckets.size(), 4u);
    for (const auto& bucket : plan.buckets) EXPECT_EQ(bucket.count, 192u);
    EXPECT_EQ(plan.bytes, 3072u);
    const auto together = plan_buckets(floats({100, 192, 64, 3}), 9000, 9000, 3);
    EXPECT_EQ(together.slots[3].offset, 1536u);
    EXPECT_EQ(together.bytes, 2304u);
    EXPECT_EQ(together.buckets[0].count, 576u);
}

// One collective has one type, so another type closes the bucket, even with room left.
TEST(GradientBuckets, HaveOneType) {
    const std::vector<GradientShape> shapes{
        {1, DataType::float32}, {1, DataType::bfloat16}, {1, DataType::bfloat16}};
    const auto plan = plan_buckets(shapes, 1000, 1000);
    ASSERT_EQ(plan.buckets.size(), 2u);
    EXPECT_EQ(plan.buckets[0].type, DataType::bfloat16);
    EXPECT_THAT(plan.buckets[1].parameters, ElementsAre(0));
}

// Here the gradients come in the wrong order, as when backward visits layers differently on one
// rank. A bucket that is full early waits for those before it: all ranks must begin their
// collectives in one order, or they hang. A gradient that is ready twice, or does not exist, is a
// mistake of the caller.
TEST(GradientBuckets, GoInOrder) {
    const auto plan = plan_buckets(floats({1, 1, 1}), 4, 4);
    BucketProgress progress(plan);
    EXPECT_THAT(*progress.ready(0), IsEmpty());
    EXPECT_THAT(*progress.ready(1), IsEmpty());
    EXPECT_THAT(progress.missing(), ElementsAre(2));
    EXPECT_FALSE(progress.ready(1));
    EXPECT_FALSE(progress.ready(3));
    EXPECT_THAT(*progress.ready(2), ElementsAre(0, 1, 2));
    progress.begin_again();
    EXPECT_THAT(*progress.ready(2), ElementsAre(0));
}

// 300 random models. Slots do not overlap and fill their buckets. In any order of ready(), each
// bucket goes once, in its turn, and not before its last gradient.
TEST(GradientBuckets, HoldForRandomModels) {
    std::mt19937 random(3);
    for (int round = 0; round < 300; ++round) {
        std::vector<GradientShape> shapes(1 + random() % 30);
        for (auto& shape : shapes)
            shape = {random() % 50, random() % 4 ? DataType::float32 : DataType::float16};
        const auto plan = plan_buckets(shapes, random() % 100, 1 + random() % 300);
        for (const auto& bucket : plan.buckets) {
            // From the last gradient to the first, each in front of the one before.
            std::size_t end = bucket.offset + bucket.count * size_of(bucket.type);
            for (auto parameter : bucket.parameters) {
                const std::size_t begin = plan.slots[parameter].offset;
                EXPECT_EQ(begin % kGradientAlignment, 0u);
                EXPECT_LE(begin + shapes[parameter].count * size_of(bucket.type), end);
                end = begin;
            }
            EXPECT_EQ(end, bucket.offset);
        }
        std::vector<std::size_t> order(shapes.size()), gone;
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
        std::shuffle(order.begin(), order.end(), random);
        BucketProgress progress(plan);
        std::vector<std::size_t> seen(plan.buckets.size());
        for (auto parameter : order) {
            ++seen[plan.slots[parameter].bucket];
            for (auto bucket : *progress.ready(parameter)) {
                EXPECT_EQ(bucket, gone.size());
                EXPECT_EQ(seen[bucket], plan.buckets[bucket].parameters.size());
                gone.push_back(bucket);
            }
        }
        EXPECT_EQ(gone.size(), plan.buckets.size());
    }
}

}  // namespace
}  // namespace ddprun::trainer
