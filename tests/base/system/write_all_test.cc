// All bytes are written, however few a write() takes; threads and wake pipes that cannot be had are
// errors.
#include "base/system/write_all.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/system/memory_file.h"
#include "base/system/start_thread.h"
#include "base/system/wake_pipe.h"

using namespace ddprun;

namespace {

bool is_readable(int fd) {
    pollfd look{fd, POLLIN, 0};
    return ::poll(&look, 1, 0) == 1;
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they need memory, too
// In a process of its own: the stack of a thread does not fit any more.
int try_without_memory() {
    const rlimit nothing{0, 0};
    ::setrlimit(RLIMIT_AS, &nothing);
    auto thread = start_thread("a test", [] {});
    if (thread) return thread->join(), 1;
    return thread.error().sentence().starts_with("no thread to be had for a test: ") ? 0 : 2;
}
#endif

int try_without_descriptors() {
    const rlimit few{3, 3};
    ::setrlimit(RLIMIT_NOFILE, &few);
    const auto pipe = WakePipe::make("a test");
    if (pipe) return 1;
    return pipe.error().sentence().starts_with("no descriptors to be had for a test: ") ? 0 : 2;
}

}  // namespace

// A pipe that does not block takes a part each time; somebody reads when it is full.
TEST(WriteAll, GoesOnWhereThereIsRoomAgain) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_NONBLOCK), 0);
    const UniqueFd reader(ends[0]), writer(ends[1]);
    const std::string text(1 << 20, 'x');
    std::string all;
    const auto read_some = [&] {
        char some[65536];
        const ssize_t size = ::read(reader.get(), some, sizeof some);
        if (size > 0) all.append(some, static_cast<std::size_t>(size));
        return true;
    };
    int writes = 0;
    EXPECT_EQ(write_all(writer.get(), text, {read_some, [&] { ++writes; }}), 0);
    while (is_readable(reader.get())) read_some();
    EXPECT_EQ(all.size(), text.size());
    EXPECT_GT(writes, 1);
    EXPECT_EQ(write_all(writer.get(), text, {[] { return false; }}), EAGAIN);
}

TEST(WriteAll, SaysWhyNot) {
    const UniqueFd full(::open("/dev/full", O_WRONLY));
    EXPECT_EQ(write_all(full.get(), "text"), ENOSPC);
    EXPECT_EQ(write_all(full.get(), ""), 0);
    EXPECT_EQ(write_all(-1, "text"), EBADF);
}

TEST(WriteAll, WritesAtAPlace) {
    const auto file = memory_file("one two three");
    EXPECT_EQ(write_all_at(file->get(), "TWO", 4), 0);
    char text[14] = "";
    ASSERT_EQ(::pread(file->get(), text, 13, 0), 13);
    EXPECT_STREQ(text, "one TWO three");
}

TEST(StartThread, RunsTheWork) {
    bool ran = false;
    auto thread = start_thread("a test", [&] { ran = true; });
    ASSERT_TRUE(thread);
    thread->join();
    EXPECT_TRUE(ran);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they need memory, too
TEST(StartThreadDeathTest, IsAnErrorWhereNoneIsToBeHad) {
    EXPECT_EXIT(::_exit(try_without_memory()), testing::ExitedWithCode(0), "");
}
#endif

// Also when it is full: who writes is never blocked.
TEST(WakePipe, StaysAwakeUntilItIsDrained) {
    auto pipe = WakePipe::make("a test");
    ASSERT_TRUE(pipe);
    EXPECT_FALSE(is_readable(pipe->fd()));
    for (int i = 0; i < 100'000; ++i) pipe->wake();
    EXPECT_TRUE(is_readable(pipe->fd()));
    pipe->drain();
    EXPECT_FALSE(is_readable(pipe->fd()));
}

TEST(WakePipeDeathTest, IsAnErrorWithoutDescriptors) {
    EXPECT_EXIT(::_exit(try_without_descriptors()), testing::ExitedWithCode(0), "");
}
