// The socket on which a worker gets its events, with workers that do not read, or have closed it.
#include "agent/workers/event_socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>

namespace ddprun::agent {
namespace {

// What a worker finds now.
std::string unread(int fd) {
    std::string all;
    char bytes[4096];
    for (ssize_t got = 0; (got = ::recv(fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0;)
        all.append(bytes, static_cast<std::size_t>(got));
    return all;
}

std::string number(int i) { return R"({"event":"test","number":)" + std::to_string(i) + "}"; }

// A worker may read byte by byte, as a shell does, and its reads wait: its end is as pipes are.
TEST(EventSocket, IsAStreamThatWaits) {
    EventSocket socket;
    const UniqueFd end = socket.open();
    ASSERT_TRUE(end);
    EXPECT_EQ(::fcntl(end.get(), F_GETFL) & O_NONBLOCK, 0);
    socket.push("one");
    socket.push("two");
    char byte = 0;
    ASSERT_EQ(::read(end.get(), &byte, 1), 1);
    EXPECT_EQ(byte + unread(end.get()), "one\ntwo\n");
}

// 10,000 events for a worker that does not read: bounded, and what is found later adds up.
TEST(EventSocket, BoundsWhatIsNotRead) {
    constexpr int kEvents = 10'000;
    EventSocket socket;
    const UniqueFd end = socket.open();
    for (int i = 0; i < kEvents; ++i) socket.push(number(i));
    const std::string first = unread(end.get());
    EXPECT_LT(first.size(), std::size_t{1} << 20);
    int read = 0;
    for (std::size_t at = 0, stop = 0; at < first.size(); at = stop + 1, ++read) {
        stop = first.find('\n', at);
        ASSERT_EQ(first.substr(at, stop - at), number(read)) << "in order, and no line is torn";
    }
    EXPECT_GT(read, 100);
    socket.push("last");
    EXPECT_EQ(unread(end.get()),
              R"({"event":"lost","lost":)" + std::to_string(kEvents - read) + "}\nlast\n");
}

TEST(EventSocket, RaisesNoSignalWhereTheWorkerHasClosedIt) {
    EventSocket socket;
    socket.open().reset();
    for (int i = 0; i < 3; ++i) socket.push("nobody reads this");
}

TEST(EventSocket, EndsWithTheWorker) {
    EventSocket socket;
    const UniqueFd end = socket.open();
    socket.push("one");
    socket.close();
    socket.push("two");
    char bytes[16];
    EXPECT_EQ(::read(end.get(), bytes, sizeof bytes), 4);
    EXPECT_EQ(::read(end.get(), bytes, sizeof bytes), 0);
}

}  // namespace
}  // namespace ddprun::agent
