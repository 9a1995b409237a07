// The store's queues: which element comes next, when a queue exists, and what it counts. Pure. What
// clients see of them is in key_values_test.cc.
#include "store/server/queues.h"

#include <gtest/gtest.h>

namespace ddprun::store {
namespace {

class QueuesTest : public testing::Test {
  protected:
    // The element as text. A missing one is "none", which no test pushes.
    std::string pop(const std::string& key) {
        const SharedValue first = queues_.pop(key);
        return first ? *first : "none";
    }

    Memory memory_{1 << 20};
    Queues queues_{memory_};
};

// Producers push work while consumers take it. Each queue keeps its own order, and an empty text is
// an element: a consumer must be able to tell it from an empty queue.
TEST_F(QueuesTest, FirstInFirstOut) {
    queues_.push("/work", "a");
    queues_.push("/done", "z");
    queues_.push("/work", "");
    EXPECT_EQ(queues_.length("/work"), 2u);
    EXPECT_EQ(pop("/work"), "a");
    queues_.push("/work", "b");
    EXPECT_EQ(pop("/work"), "");
    EXPECT_EQ(pop("/work"), "b");
    EXPECT_EQ(pop("/work"), "none");
    EXPECT_EQ(pop("/done"), "z");
}

// A program may use a new name for each message. A queue without elements is gone and costs
// nothing, and looking for one does not make it.
TEST_F(QueuesTest, AnEmptyQueueCostsNothing) {
    EXPECT_EQ(pop("/q"), "none");
    EXPECT_EQ(queues_.length("/q"), 0u);
    EXPECT_EQ(memory_.used, 0u);
    for (int i = 0; i < 3; ++i) {
        queues_.push("/q", "element");
        EXPECT_GT(memory_.used, 0u);
        pop("/q");
        EXPECT_EQ(queues_.length("/q"), 0u);
        EXPECT_EQ(memory_.used, 0u);
    }
}

// A large element is popped, and its reply waits for a slow reader. It still occupies memory, so it
// counts until the reply is gone; the queue itself does not.
TEST_F(QueuesTest, APoppedElementCountsWhileItIsHeld) {
    const std::size_t size = 100'000;
    queues_.push("/q", std::string(size, 'x'));
    const std::uint64_t with_queue = memory_.used;
    SharedValue on_its_way = queues_.pop("/q");
    EXPECT_GT(memory_.used, size);
    EXPECT_LT(memory_.used, with_queue);
    on_its_way.reset();
    EXPECT_EQ(memory_.used, 0u);
}

}  // namespace
}  // namespace ddprun::store
