// The socket of a worker at its end. MPI_Abort once ended with another exit code in one of some
// hundred runs: ddprun closed the connection first, and MPICH died by SIGPIPE before the SIGKILL.
#include "agent/pmi/pmi_server.h"

#include <gmock/gmock.h>
#include <sys/socket.h>

#include "tests/support/loop.h"

namespace ddprun::agent::pmi {
namespace {

constexpr std::string_view kAbort = "cmd=abort exitcode=0\n";

struct OneWorker {
    OneWorker() : worker(server.open(0)) {}

    void write(std::string_view lines) {
        ASSERT_EQ(::send(worker.get(), lines.data(), lines.size(), MSG_NOSIGNAL),
                  static_cast<ssize_t>(lines.size()));
    }

    asio::io_context loop{1};
    std::vector<Desk::Fault> ended;
    Server server{loop, place(), std::make_shared<TurnBudget>(loop),
                  [this](const Desk::Fault& fault) { ended.push_back(fault); },
                  [](const std::string&) {}};
    UniqueFd worker;

    static rendezvous::NodePlace place() {
        rendezvous::NodePlace place;
        place.slots = 1;
        return place;
    }
};

TEST(PmiServer, KeepsTheConnectionOfAWorkerThatItEnds) {
    OneWorker one;
    one.write(kAbort);
    ASSERT_TRUE(run_until(one.loop, [&] { return !one.ended.empty(); }));
    EXPECT_THAT(one.ended[0].why, testing::HasSubstr("MPI_Abort with exit code 0"));
    char byte = 0;
    EXPECT_EQ(::recv(one.worker.get(), &byte, 1, MSG_DONTWAIT), -1) << "the connection has ended";
    EXPECT_EQ(errno, EAGAIN);
    one.write("cmd=get_maxes\n");
}

// The worker leaves at once, and ddprun hears of its death before it has read the line.
TEST(PmiServer, TakesWhatAWorkerHasWrittenBeforeItsEnd) {
    OneWorker one;
    one.write(std::string("cmd=get_maxes\n").append(kAbort));
    one.worker = {};
    EXPECT_EQ(one.server.exited(0, {}).status.signal, SIGKILL);
    ASSERT_EQ(one.ended.size(), 1u);
    EXPECT_THAT(one.ended[0].why, testing::HasSubstr("MPI_Abort with exit code 0"));
}

// A process that the worker left behind writes on.
TEST(PmiServer, FinishesWhoeverWritesOn) {
    OneWorker one;
    one.write("cmd=get_maxes\n");
    EXPECT_FALSE(one.server.exited(0, {}).status.failed());
    one.write(kAbort);
    one.loop.poll();
    EXPECT_TRUE(one.ended.empty());
}

}  // namespace
}  // namespace ddprun::agent::pmi
