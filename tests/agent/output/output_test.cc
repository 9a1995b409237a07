// Real pipes of a worker into consoles and files.
#include "agent/output/output.h"

#include "tests/agent/output/output_rig.h"

using namespace ddprun;
using namespace ddprun::agent;

namespace {

StreamRoute to(Console* console, std::string prefix = "") {
    StreamRoute route;
    route.console = console;
    route.prefix = std::move(prefix);
    return route;
}

}  // namespace

// Two ranks on one console, in pieces, one line of 10 MB among them: no line is torn.
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

// One worker: byte for byte, and the files as well; an end without a newline stays one.
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
    EXPECT_EQ(reader.read_now(), "10%\r20%");  // at once
    output.finish();
    EXPECT_TRUE(rig.run_until([&] { return slurp(rig.path("out")) == "10%\r20%"; }));
    EXPECT_TRUE(rig.run_until([&] { return slurp(rig.path("err")) == "warning\n"; }));
}

// The file of the filters gets whole lines of all ranks that have one of the texts, with their
// prefix; the prefix itself is not looked at.
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

// The worker has exited, a process it left holds the pipe: what was printed comes, and nobody
// waits.
TEST(Output, FinishTakesWhatIsThereAndDoesNotWait) {
    Rig rig;
    Ends reader;
    const auto console = rig.console(reader.in.get());
    WorkerOutput output(rig.io, to(console.get(), "p:"), {});
    auto ends = output.open();
    ASSERT_TRUE(ends);
    ASSERT_EQ(::write(ends->out.get(), "last words", 10), 10);
    output.finish();  // ends->out is still open
    EXPECT_EQ(reader.read_now(), "p:last words\n");
    EXPECT_EQ(::write(ends->out.get(), "x", 1), -1);
}

// A megabyte lies in the pipe when the worker ends: all of it comes.
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

// Nobody reads the console: the worker goes on until the limit, then waits, and that is told once;
// all comes when it is read.
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
    // On until the pipe stays full: then the loop reads no more for this console.
    ASSERT_TRUE(rig.run_until([&] {
        const ssize_t n = ::write(ends->out.get(), data.data(), data.size());
        if (n > 0) total += static_cast<std::size_t>(n);
        return n < 0 && console->full();
    }));
    rig.run();
    EXPECT_GE(console->waiting(), std::size_t{1} << 20);
    EXPECT_LE(console->waiting(), std::size_t{2} << 20);
    EXPECT_EQ(::fcntl(slow.in.get(), F_GETFL) & O_NONBLOCK, 0);  // others write to it as before
    ASSERT_EQ(rig.errors.size(), 1U);
    EXPECT_EQ(rig.errors[0].sentence(),
              "stdout is too slow: 1 MiB are waiting; workers that print wait until it catches up");
    ends->out.reset();
    std::size_t got = 0;
    EXPECT_TRUE(rig.run_until([&] { return (got += slow.read_now().size()) == total; }));
    EXPECT_EQ(rig.errors.size(), 1U);
}

// A log file whose file system hangs (a FIFO that nobody reads, for a test): the loop goes on, the
// worker waits beyond the limit, and that is told when it has lasted.
TEST(Output, AFileThatHangsHoldsUpItsWorkerAlone) {
    Rig rig;
    Ends hung;
    StreamRoute route;
    route.file = std::make_unique<Console>(
        rig.io, rig.files, UniqueFd(::dup(hung.in.get())), "out", rig.tell,
        Console::Options{.limit = 1 << 20, .patience = std::chrono::milliseconds{10}});
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
