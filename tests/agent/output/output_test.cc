// What a worker prints, from its real pipes into consoles and files. The test plays the worker: it
// writes to the worker's ends of the pipes.
#include "agent/output/output.h"

#include <boost/asio/post.hpp>

#include "tests/agent/output/output_rig.h"

using namespace ddprun;
using namespace ddprun::agent;

namespace {

// A stream that goes to this console only, without own file and filters.
StreamRoute to(Console* console, std::string prefix = "") {
    StreamRoute route;
    route.console = console;
    route.prefix = std::move(prefix);
    return route;
}

}  // namespace

// Two ranks share one console. Rank 0 writes a line of 10 MiB in pieces, rank 1 short lines between
// them. In the result no line is torn, and bytes that are no text pass.
TEST(Output, LinesOfTwoRanksAreNeverTorn) {
    Rig rig;
    const UniqueFd file = rig.file("console");
    const auto console = rig.console(file.get());
    WorkerOutput zero(rig.io, to(console.get(), "[d0]:"), to(console.get(), "[d0]:"));
    WorkerOutput one(rig.io, to(console.get(), "[d1]:"), to(console.get(), "[d1]:"));
    auto zeros = zero.open(), ones = one.open();
    ASSERT_TRUE(zeros && ones);
    const std::string piece(1 << 20, 'a');
    for (int i = 0; i < 10; ++i) {
        rig.feed(zeros->out.get(), piece);
        rig.feed(ones->out.get(), "short " + std::to_string(i) + "\n");
    }
    rig.feed(zeros->out.get(), "\n");
    rig.feed(zeros->err.get(), std::string("bin\0\xff\n", 6));
    rig.feed(ones->err.get(), "unfinished");
    zero.finish();
    one.finish();
    std::string expected;
    for (int i = 0; i < 10; ++i) expected += "[d1]:short " + std::to_string(i) + "\n";
    expected += "[d0]:";
    for (int i = 0; i < 10; ++i) expected += piece;
    expected += "\n[d0]:" + std::string("bin\0\xff\n", 6) + "[d1]:unfinished\n";
    EXPECT_TRUE(rig.written(*console, "console") == expected);
    EXPECT_EQ(one.tail().back(), "unfinished");
    EXPECT_TRUE(rig.errors.empty());
}

// A lone worker has no prefix: byte for byte on the console and in the files, and an end without a
// newline stays one. Its user sees the same as without ddprun.
TEST(Output, OneWorkersBytesPassAsTheyAre) {
    Rig rig;
    Ends reader;
    const auto console = rig.console(reader.in.get());
    StreamRoute out = to(console.get()), err;
    out.file = rig.log_file("out");
    err.file = rig.log_file("err");
    WorkerOutput output(rig.io, std::move(out), std::move(err));
    auto ends = output.open();
    ASSERT_TRUE(ends);
    rig.feed(ends->out.get(), "10%\r20%");
    rig.feed(ends->err.get(), "warning\n");
    // Nothing is held back until a line ends.
    EXPECT_EQ(reader.read_now(), "10%\r20%");
    output.finish();
    EXPECT_TRUE(rig.run_until([&] { return slurp(rig.path("out")) == "10%\r20%"; }));
    EXPECT_TRUE(rig.run_until([&] { return slurp(rig.path("err")) == "warning\n"; }));
}

// All ranks share one file of the filters. It gets whole lines that have one of the texts. The
// prefix is added but not searched: "d0" is in the prefix of rank 0, and matches only in a line.
TEST(Output, LinesThatMatchAreDuplicated) {
    Rig rig;
    const auto filtered = rig.log_file("filtered");
    const auto route = [&](const std::string& prefix) {
        StreamRoute route;
        route.filtered = filtered.get();
        route.needles = {"loss", "d0"};
        route.filtered_prefix = prefix;
        return route;
    };
    WorkerOutput zero(rig.io, route("[d0]:"), {}), one(rig.io, route("[d1]:"), {});
    auto zeros = zero.open(), ones = one.open();
    ASSERT_TRUE(zeros && ones);
    rig.feed(zeros->out.get(), "lo");
    rig.feed(ones->out.get(), "loss 1\nnothing\n");
    rig.feed(zeros->out.get(), "ss 2\nother\nd0");
    zero.finish();
    one.finish();
    EXPECT_EQ(rig.written(*filtered, "filtered"), "[d1]:loss 1\n[d0]:loss 2\n[d0]:d0\n");
}

// The worker has exited, but a process that it left behind holds its pipe open. The report needs
// the last words now, and a restart must not wait for that process.
TEST(Output, FinishTakesWhatIsThereAndDoesNotWait) {
    Rig rig;
    Ends reader;
    const auto console = rig.console(reader.in.get());
    WorkerOutput output(rig.io, to(console.get(), "p:"), {});
    auto ends = output.open();
    ASSERT_TRUE(ends);
    ASSERT_EQ(::write(ends->out.get(), "last words", 10), 10);
    // ends->out is still open: it plays the process that was left behind.
    output.finish();
    EXPECT_EQ(reader.read_now(), "p:last words\n");
    EXPECT_EQ(::write(ends->out.get(), "x", 1), -1);
}

// Both streams, also where nothing goes to the console, up to the end.
TEST(Output, ItsTextCanBeReadAlong) {
    Rig rig;
    const auto file = rig.log_file("out");
    WorkerOutput output(rig.io, to(file.get()), {});
    auto ends = output.open();
    ASSERT_TRUE(ends);
    rig.feed(ends->out.get(), "before\n");
    int woken = 0;
    OutputReader reader(output.recent(), 20, [&woken] { ++woken; });
    EXPECT_EQ(reader.take(1000).pieces, (std::vector<OutputPiece>{{false, "before\n"}}));
    EXPECT_TRUE(reader.take(1000).is_empty());
    rig.feed(ends->err.get(), "warning\n");
    EXPECT_EQ(woken, 1);
    EXPECT_EQ(reader.take(1000).pieces, (std::vector<OutputPiece>{{true, "warning\n"}}));
    EXPECT_TRUE(reader.take(1000).is_empty());
    ASSERT_EQ(::write(ends->out.get(), "last words", 10), 10);
    output.finish();
    const rendezvous::WorkerText last = reader.take(1000);
    EXPECT_EQ(last.pieces, (std::vector<OutputPiece>{{false, "last words"}}));
    EXPECT_TRUE(last.ended);
}

// A worker may print a lot and die at once. Up to a megabyte lies in its pipe then, with the reason
// of its death at the very end.
TEST(Output, FinishTakesAFullPipe) {
    Rig rig;
    const auto file = rig.log_file("out");
    WorkerOutput output(rig.io, to(file.get()), {});
    auto ends = output.open();
    ASSERT_TRUE(ends);
    ::fcntl(ends->out.get(), F_SETFL, O_NONBLOCK);
    std::size_t fed = 0;
    for (ssize_t n; (n = ::write(ends->out.get(), "abcdefg\n", 8)) > 0;)
        fed += static_cast<std::size_t>(n);
    output.finish();
    EXPECT_EQ(rig.written(*file, "out").size(), fed);
}

// Nobody reads the console (a terminal that is stopped with Ctrl-S). The worker goes on until the
// limit, and then waits in its write, as without ddprun. The operator hears of it once, and nothing
// is lost when the console is read again.
TEST(Output, ASlowConsoleHoldsUpOnlyBeyondTheLimit) {
    Rig rig;
    Ends slow;
    const auto console = rig.console(slow.in.get(), {.limit = 1 << 20});
    WorkerOutput output(rig.io, to(console.get()), {});
    auto ends = output.open();
    ASSERT_TRUE(ends);
    const std::string data(1 << 16, 'x');
    ::fcntl(ends->out.get(), F_SETFL, O_NONBLOCK);
    std::size_t total = 0;
    // Writes until the pipe stays full, which shows that the loop reads no more for this console.
    ASSERT_TRUE(rig.run_until([&] {
        const ssize_t n = ::write(ends->out.get(), data.data(), data.size());
        if (n > 0) total += static_cast<std::size_t>(n);
        return n < 0 && console->full();
    }));
    rig.run();
    EXPECT_GE(console->waiting(), std::size_t{1} << 20);
    // The limit is looked at before each read, so the queue may exceed it (1 MiB) by one read.
    EXPECT_LE(console->waiting(), std::size_t{2} << 20);
    // Other processes share this descriptor and must not get EAGAIN because of ddprun.
    EXPECT_EQ(::fcntl(slow.in.get(), F_GETFL) & O_NONBLOCK, 0);
    ASSERT_EQ(rig.errors.size(), 1U);
    EXPECT_EQ(rig.errors[0].sentence(),
              "stdout is too slow: 1 MiB are waiting; workers that print wait until it catches up");
    ends->out.reset();
    std::size_t got = 0;
    EXPECT_TRUE(rig.run_until([&] { return (got += slow.read_now().size()) == total; }));
    EXPECT_EQ(rig.errors.size(), 1U);
}

// The file system of a log file hangs; a pipe that nobody reads plays it. The loop and its
// heartbeats go on, and only the worker waits, beyond the limit. The operator hears of it when it
// has lasted (10 ms here).
TEST(Output, AFileThatHangsHoldsUpItsWorkerAlone) {
    Rig rig;
    Ends hung;
    StreamRoute route;
    route.file = std::make_unique<Console>(rig.io, rig.files, UniqueFd(::dup(hung.in.get())), "out",
                                           rig.tell, Console::Options{.limit = 1 << 20});
    Console* const file = route.file.get();
    WorkerOutput output(rig.io, std::move(route), {});
    auto ends = output.open();
    ASSERT_TRUE(ends);
    ::fcntl(ends->out.get(), F_SETFL, O_NONBLOCK);
    const std::string data(1 << 16, 'x');
    std::size_t total = 0;
    ASSERT_TRUE(rig.run_until([&] {
        const ssize_t n = ::write(ends->out.get(), data.data(), data.size());
        if (n > 0) total += static_cast<std::size_t>(n);
        return n < 0 && !rig.errors.empty();
    }));
    EXPECT_EQ(rig.errors[0].sentence(),
              "out is too slow: 1 MiB are waiting; workers that print wait until it catches up");
    EXPECT_LE(file->waiting(), std::size_t{2} << 20);
    ends->out.reset();
    std::size_t got = 0;
    EXPECT_TRUE(rig.run_until([&] { return (got += hung.read_now().size()) == total; }));
    EXPECT_EQ(rig.errors.size(), 1U);
}

// Eight workers fill their pipes with empty lines, the costliest ones. Together they get no more of
// each turn of the loop than one worker would, so that Beats and signals have their turn.
TEST(Output, WorkersThatFloodShareEachTurnOfTheLoop) {
    Rig rig;
    const UniqueFd file = rig.file("console");
    const auto console = rig.console(file.get());
    const auto turns = std::make_shared<TurnBudget>(rig.io);
    std::vector<WorkerOutput> workers;
    std::vector<UniqueFd> pipes;
    for (int i = 0; i < 8; ++i) {
        StreamRoute route = to(console.get(), "p:");
        route.turns = turns;
        workers.emplace_back(rig.io, std::move(route), StreamRoute());
        auto ends = workers.back().open();
        ASSERT_TRUE(ends);
        ::fcntl(ends->out.get(), F_SETFL, O_NONBLOCK);
        const std::string lines(1 << 16, '\n');
        while (::write(ends->out.get(), lines.data(), lines.size()) > 0) {
        }
        const std::string name = "/proc/self/fd/" + std::to_string(ends->out.get());
        pipes.emplace_back(::open(name.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    }
    const auto left_in_pipes = [&] {
        std::size_t sum = 0;
        for (const UniqueFd& pipe : pipes) {
            int bytes = 0;
            EXPECT_EQ(::ioctl(pipe.get(), FIONREAD, &bytes), 0);
            sum += static_cast<std::size_t>(bytes);
        }
        return sum;
    };
    // Looks once in each turn how much has been read since the last one.
    std::size_t left = left_in_pipes(), most = 0;
    EXPECT_GT(left, 2 * TurnBudget::kBytes);
    std::function<void()> look = [&] {
        const std::size_t now = left_in_pipes();
        most = std::max(most, left - now);
        left = now;
        if (left > 0) boost::asio::post(rig.io, look);
    };
    boost::asio::post(rig.io, look);
    ASSERT_TRUE(rig.run_until([&] { return left == 0; }));
    EXPECT_LE(most, TurnBudget::kBytes + (std::size_t{128} << 10));
}
