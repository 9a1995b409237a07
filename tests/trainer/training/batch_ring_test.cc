// In which order batches leave that are loaded in any order. Pure.
#include "trainer/training/batch_ring.h"

#include <gmock/gmock.h>

namespace ddprun::trainer {
namespace {

using testing::Eq;
using testing::Optional;

// The second and third batch are loaded first, and wait for the first one.
TEST(BatchRing, HandsOutInOrder) {
    BatchRing ring(3);
    EXPECT_EQ(ring.front(), std::nullopt);
    EXPECT_EQ(ring.begin(), 0u);
    EXPECT_EQ(ring.begin(), 1u);
    EXPECT_FALSE(ring.full());
    EXPECT_EQ(ring.begin(), 2u);
    EXPECT_TRUE(ring.full());
    ring.loaded(2);
    ring.loaded(1);
    EXPECT_EQ(ring.front(), std::nullopt);
    EXPECT_THAT(ring.front(1), Optional(Eq(1u)));
    ring.loaded(0);
    for (std::size_t slot = 0; slot < 3; ++slot) {
        EXPECT_EQ(ring.number(), slot);
        EXPECT_THAT(ring.front(), Optional(Eq(slot)));
        ring.pop();
    }
    EXPECT_EQ(ring.front(), std::nullopt);
}

// A slot is used again, and what it held before does not count as loaded.
TEST(BatchRing, UsesASlotAgain) {
    BatchRing ring(2);
    ring.loaded(ring.begin());
    ring.pop();
    EXPECT_EQ(ring.begin(), 1u);
    EXPECT_EQ(ring.begin(), 0u);
    ring.loaded(1);
    EXPECT_EQ(ring.front(1), std::nullopt);
    ring.loaded(0);
    EXPECT_THAT(ring.front(1), Optional(Eq(0u)));
}

TEST(BatchRing, ForgetsWhatWasAhead) {
    BatchRing ring(2);
    ring.loaded(ring.begin());
    ring.loaded(ring.begin());
    ring.clear();
    EXPECT_EQ(ring.front(), std::nullopt);
    EXPECT_FALSE(ring.full());
    EXPECT_EQ(ring.begin(), 0u);
}

}  // namespace
}  // namespace ddprun::trainer
