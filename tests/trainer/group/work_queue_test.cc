// What a queue does with tasks that it cannot carry out.
#include "trainer/group/work_queue.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

using namespace ddprun;
using namespace ddprun::trainer;

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they need memory, too
namespace {

// In a process of its own, in which the stack of a thread does not fit any more: 0 if each task is
// answered, and none stays in the queue, where it would run later, or make the queue look busy.
int push_without_thread() {
    WorkQueue queue;
    const rlimit before = [] {
        rlimit limit{};
        ::getrlimit(RLIMIT_AS, &limit);
        return limit;
    }();
    const rlimit nothing{0, before.rlim_max};
    ::setrlimit(RLIMIT_AS, &nothing);
    int ran = 0;
    const auto task = [&ran] { return ++ran, Result<void>(); };
    const Result<void> refused = queue.push(task).wait();
    if (refused || refused.error().code() != ErrorCode::unavailable || ran) return 1;
    // At once, in this thread: nothing is queued.
    if (!queue.run_now(task) || ran != 1) return 2;
    ::setrlimit(RLIMIT_AS, &before);
    return queue.push(task).wait() && ran == 2 ? 0 : 3;
}

}  // namespace
#endif

TEST(WorkQueue, CarriesOutInOrder) {
    WorkQueue queue;
    std::string order;
    auto first = queue.push([&] { return order += "a", Result<void>(); });
    auto second = queue.push([&] { return order += "b", Result<void>(); });
    EXPECT_TRUE(second.wait());
    EXPECT_TRUE(first.wait());
    EXPECT_EQ(order, "ab");
    queue.stop();
    EXPECT_EQ(queue.push([] { return Result<void>(); }).wait().error().code(), ErrorCode::closed);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they need memory, too
TEST(WorkQueueDeathTest, KeepsNoTaskForWhichThereIsNoThread) {
    EXPECT_EXIT(::_exit(push_without_thread()), testing::ExitedWithCode(0), "");
}
#endif
