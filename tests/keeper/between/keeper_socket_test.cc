// ddprun's end of the socket to the keeper: what happens when more is sent than fits, and at the
// end. The test plays the keeper, at the other end of a real socket.
#include "keeper/between/keeper_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <memory>
#include <vector>

using namespace ddprun;
using namespace ddprun::agent::keeper;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

// A request that the test recognizes by its number.
Request numbered(std::uint32_t id) {
    Request request;
    request.kind = RequestKind::sweep;
    request.id = id;
    return request;
}

// Both ends, and what ddprun's end has reported.
struct Line {
    boost::asio::io_context io;
    std::shared_ptr<Socket> mine;
    UniqueFd keepers;
    std::vector<std::uint32_t> replies;  // their ids
    int ends = 0;

    Line() {
        int ends[2];
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
        // The least buffer that the kernel grants: a few requests fit.
        const int least = 1;
        EXPECT_EQ(::setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &least, sizeof least), 0);
        mine = std::make_shared<Socket>(UniqueFd(ends[0]));
        keepers.reset(ends[1]);
    }
    void listen() {
        mine->listen(
            io, [this](const Reply& reply, std::vector<UniqueFd>&) { replies.push_back(reply.id); },
            [this] {
                EXPECT_FALSE(mine->is_open());
                ++ends;
            });
    }
    void run() {
        io.restart();
        io.poll();
    }
    // The keeper takes one request. Returns its number, or -1 if there is none.
    std::int64_t take(std::vector<UniqueFd>& fds) {
        Request request;
        const Transfer taken = receive_packet(keepers.get(), &request, sizeof request, fds);
        return taken == Transfer::done ? std::int64_t{request.id} : -1;
    }
    void answer(std::uint32_t id) {
        Reply reply;
        reply.id = id;
        EXPECT_EQ(send_packet(keepers.get(), &reply, sizeof reply, {}), Transfer::done);
    }
};

// Far more than the buffer takes.
constexpr std::uint32_t kMany = 100;

// 100 requests at once, as a start of many workers, and before the loop runs. None is lost, none
// overtakes another, and each has its payload and its descriptor, although the caller closed its
// own one at once.
TEST(KeeperSocket, WhatDoesNotFitWaitsInOrder) {
    Line line;
    for (std::uint32_t i = 0; i < kMany; ++i) {
        const UniqueFd mine(::dup(line.keepers.get()));
        line.mine->send(numbered(i), std::to_string(i), {mine.get()});
    }
    line.listen();
    int times_empty = 0;
    for (std::uint32_t i = 0; i < kMany; ++i) {
        std::vector<UniqueFd> fds;
        std::int64_t id = line.take(fds);
        if (id < 0) {
            // The socket is empty: there is room, and the loop learns it.
            line.run();
            id = line.take(fds);
            ++times_empty;
        }
        ASSERT_EQ(id, i);
        ASSERT_EQ(fds.size(), 2U);
        std::vector<char> payload;
        ASSERT_TRUE(read_payload(fds[0].get(), std::to_string(i).size(), payload));
        ASSERT_EQ(std::string(payload.begin(), payload.end()), std::to_string(i));
    }
    EXPECT_GT(times_empty, 1);
    std::vector<UniqueFd> none;
    EXPECT_EQ(line.take(none), -1);
    line.mine->close();
    line.run();
    EXPECT_EQ(line.ends, 0);
}

// The replies that a keeper sent before it died are delivered, then its end, once. Requests that
// still waited are dropped: the next keeper has a socket of its own.
TEST(KeeperSocket, TheEndComesAfterTheLastReply) {
    Line line;
    line.listen();
    for (std::uint32_t i = 0; i < kMany; ++i) line.mine->send(numbered(i));
    line.answer(7);
    line.answer(8);
    line.keepers.reset();
    line.run();
    EXPECT_EQ(line.replies, (std::vector<std::uint32_t>{7, 8}));
    EXPECT_EQ(line.ends, 1);
    line.run();
    EXPECT_EQ(line.ends, 1);
}

// A reply may lead to the end of the whole job, in the callback. Nothing is delivered after it.
TEST(KeeperSocket, ACallbackMayCloseIt) {
    Line line;
    int replies = 0;
    line.mine->listen(
        line.io,
        [&](const Reply&, std::vector<UniqueFd>&) {
            ++replies;
            line.mine->close();
            line.mine.reset();
        },
        [&] { ++line.ends; });
    line.answer(1);
    line.answer(2);
    line.run();
    EXPECT_EQ(replies, 1);
    EXPECT_EQ(line.ends, 0);
}

// At the end of ddprun the loop does not run any more. Replies are thrown away, waiting requests
// still go out, and the wait ends with the keeper, or gives up.
TEST(KeeperSocket, AwaitsTheEndWithoutTheLoop) {
    Line line;
    for (std::uint32_t i = 0; i < kMany; ++i) line.mine->send(numbered(i));
    line.answer(1);
    std::uint32_t taken = 0;
    while (taken < kMany) {
        EXPECT_NE(line.mine->await_end(milliseconds{1}), Socket::End::closed);
        std::vector<UniqueFd> fds;
        while (line.take(fds) == std::int64_t{taken}) ++taken;
    }
    // Whoever answers is not frozen, even if it takes longer than one waits.
    EXPECT_EQ(line.mine->await_end(milliseconds{1}), Socket::End::silent);
    line.answer(2);
    EXPECT_EQ(line.mine->await_end(milliseconds{1}), Socket::End::not_yet);
    line.keepers.reset();
    EXPECT_EQ(line.mine->await_end(seconds{30}), Socket::End::closed);
    EXPECT_EQ(line.replies.size(), 0U);
}

}  // namespace
