// Whose turn it is, and that nobody is called who has left.
#include "base/loop/ready_sockets.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <string>
#include <utility>

namespace ddprun {
namespace {

// One end of a pair, watched; the test has the other.
class Watched final : public ReadySocket {
  public:
    explicit Watched(ReadySockets& sockets, std::uint32_t events = EPOLLIN) : sockets_(sockets) {
        std::array<int, 2> ends{};
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
        mine_ = UniqueFd(ends[0]);
        peer = UniqueFd(ends[1]);
        EXPECT_FALSE(want(events));
    }
    ~Watched() { (void)want(0); }

    std::error_code want(std::uint32_t events) { return sockets_.want(*this, mine_.get(), events); }
    void hear() { EXPECT_EQ(::write(peer.get(), "x", 1), 1); }
    void read() {
        char byte = 0;
        EXPECT_EQ(::read(mine_.get(), &byte, 1), 1);
    }
    void on_ready(bool readable, bool writable) override {
        told += readable ? "r" : "";
        told += writable ? "w" : "";
        if (then) then();
    }

    UniqueFd peer;
    std::string told;
    std::function<void()> then;

  private:
    ReadySockets& sockets_;
    UniqueFd mine_;
};

// Each turn tells of what is still there, and then no more.
TEST(ReadySockets, TellsForAsLongAsThereIsSomething) {
    ReadySockets sockets;
    Watched one(sockets);
    sockets.turn(0);
    EXPECT_EQ(one.told, "");
    one.hear();
    sockets.turn(-1);
    sockets.turn(-1);
    EXPECT_EQ(one.told, "rr");
    one.read();
    sockets.turn(0);
    EXPECT_EQ(one.told, "rr");
}

TEST(ReadySockets, TellsOnlyWhatIsWanted) {
    ReadySockets sockets;
    Watched one(sockets, EPOLLOUT);
    one.hear();
    sockets.turn(-1);
    EXPECT_FALSE(one.want(EPOLLIN | EPOLLOUT));
    sockets.turn(-1);
    EXPECT_FALSE(one.want(EPOLLIN));
    sockets.turn(-1);
    EXPECT_EQ(one.told, "wrwr");
}

// Else a connection that is neither read nor written would keep the thread busy once it breaks.
TEST(ReadySockets, SaysNothingOfABrokenOneThatWantsNothing) {
    ReadySockets sockets;
    Watched one(sockets);
    EXPECT_FALSE(one.want(0));
    one.peer.reset();
    sockets.turn(0);
    EXPECT_EQ(one.told, "");
    EXPECT_FALSE(one.want(EPOLLIN));
    sockets.turn(-1);
    EXPECT_EQ(one.told, "rw");
}

// Both are ready in one turn. The first ends the other, whose memory may be gone by then.
TEST(ReadySockets, DoesNotCallOneThatHasLeftInTheSameTurn) {
    ReadySockets sockets;
    Watched one(sockets), other(sockets);
    one.then = [&] { (void)other.want(0); };
    other.then = [&] { (void)one.want(0); };
    one.hear();
    other.hear();
    sockets.turn(-1);
    EXPECT_EQ(one.told + other.told, "r");
}

// Work in parts: after each part the others have their turn, and the thread does not sleep.
TEST(ReadySockets, DoesTheRestAfterTheOthers) {
    ReadySockets sockets;
    Watched one(sockets), other(sockets);
    std::string order;
    one.then = [&] {
        one.read();
        sockets.later([&] {
            order += "later ";
            sockets.later([&] { order += "last "; });
        });
        other.hear();
    };
    other.then = [&] {
        other.read();
        order += "other ";
    };
    one.hear();
    for (int turn = 0; turn < 3; ++turn) sockets.turn(-1);
    EXPECT_EQ(order, "other later last ");
}

// Until the sockets are destroyed, which leaves nothing of theirs on the loop.
TEST(ReadySockets, TakesItsTurnsOnAnAsioLoop) {
    boost::asio::io_context loop;
    {
        ReadySockets sockets;
        Watched one(sockets);
        int parts = 0;
        std::function<void()> go_on = [&] {
            if (++parts < 3) sockets.later(go_on);
        };
        one.then = [&] {
            one.read();
            if (one.told == "rr") go_on();
        };
        sockets.follow(loop.get_executor());
        const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{20};
        for (const char* told : {"r", "rr"}) {
            one.hear();
            while (one.told != told && std::chrono::steady_clock::now() < until)
                loop.run_one_until(until);
            EXPECT_EQ(one.told, told);
        }
        while (parts < 3 && std::chrono::steady_clock::now() < until) loop.run_one_until(until);
        EXPECT_EQ(parts, 3);
    }
    loop.run();
    EXPECT_TRUE(loop.stopped());
}

}  // namespace
}  // namespace ddprun
