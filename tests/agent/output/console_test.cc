// Consoles, the queues in front of ddprun's own stdout and of log files: read slowly, not at all,
// on a full disk, or shared by several ranks. Pipes, sockets and files are real.
#include "agent/output/console.h"

#include <sys/socket.h>

#include "tests/agent/output/output_rig.h"

using namespace ddprun;
using namespace ddprun::agent;

// The terminal or `| head` has gone. The job goes on without its console, and the operator reads
// one line about it, not one for each line of output. stdout may be a socket, which has errors of
// its own.
TEST(Console, AClosedOneIsReportedOnce) {
    for (const bool socket : {false, true}) {
        Rig rig;
        int ends[2];
        ASSERT_EQ(socket ? ::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) : ::pipe(ends), 0);
        UniqueFd reader(ends[0]);
        const UniqueFd writer(ends[1]);
        const auto console = rig.console(writer.get());
        console->write("fine\n");
        reader.reset();
        for (int i = 0; i < 3; ++i) console->write("lost\n");
        rig.run();
        ASSERT_EQ(rig.errors.size(), 1U);
        EXPECT_EQ(rig.errors[0].code(), ErrorCode::closed);
        EXPECT_EQ(rig.errors[0].sentence(),
                  "cannot write to stdout: Broken pipe; output to it is discarded from now on");
        EXPECT_EQ(console->waiting(), 0U);
    }
}

// /dev/full answers each write with "No space left on device". Unlike a closed pipe, a disk may get
// room again, so each line is tried, but only the first failure is reported.
TEST(Console, AFullDiskIsReportedOnce) {
    Rig rig;
    const UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
    const auto console = rig.console(full.get());
    for (int i = 0; i < 3; ++i) {
        console->write("lost\n");
        EXPECT_TRUE(rig.run_until([&] { return console->waiting() == 0; }));
    }
    rig.run();
    ASSERT_EQ(rig.errors.size(), 1U);
    EXPECT_EQ(rig.errors[0].code(), ErrorCode::unavailable);
}

// A line too long for the memory is written in parts. Its writer then has the console to itself
// until the line ends, so no other text tears the line. What others write meanwhile keeps its
// order.
TEST(Console, WhatOthersWriteWaitsForTheEndOfALongLine) {
    Rig rig;
    const UniqueFd file = rig.file("out");
    const auto console = rig.console(file.get());
    const int mine = 0, yours = 0;
    ASSERT_TRUE(console->hold(&mine));
    EXPECT_FALSE(console->hold(&yours));
    console->write("a long", &mine);
    console->write("yours\n", &yours);
    console->write("anybody's\n");
    console->write(" line\n", &mine);
    // A release by another writer than the holder changes nothing.
    console->release(&yours);
    EXPECT_TRUE(console->holds(&mine));
    console->release(&mine);
    EXPECT_FALSE(console->holds(&mine));
    EXPECT_EQ(rig.written(*console, "out"), "a long line\nyours\nanybody's\n");
}

// A line may never end, and other ranks cannot wait forever. At half of the limit the long line is
// cut: the limit is 20 here, the first line behind it has 6 bytes, both have 12.
TEST(Console, ALongLineIsEndedWhenTooMuchWaitsBehindIt) {
    Rig rig;
    const UniqueFd file = rig.file("out");
    const auto console = rig.console(file.get(), {.limit = 20});
    const int mine = 0;
    ASSERT_TRUE(console->hold(&mine));
    console->write("long", &mine);
    console->write("12345\n");
    EXPECT_TRUE(console->holds(&mine));
    console->write("67890\n");
    EXPECT_FALSE(console->holds(&mine));
    EXPECT_EQ(rig.written(*console, "out"), "long\n12345\n67890\n");
    // flush(), inside written(), ends the line as well: the process is about to end.
    ASSERT_TRUE(console->hold(&mine));
    console->write("half", &mine);
    console->write("other\n");
    EXPECT_EQ(rig.written(*console, "out"), "long\n12345\n67890\nhalf\nother\n");
    Ends pipe;
    // Where lines are dropped nobody waits, so nobody may hold the console.
    EXPECT_FALSE(rig.console(pipe.in.get(), {.overflow = Overflow::drop})->hold(&mine));
}

// The writer stops in the middle of its line, perhaps for hours. The others wait for 5 s at most;
// 20 ms here, so that the test need not.
TEST(Console, ALongLineIsEndedWhenItDoesNotGrow) {
    Rig rig;
    const UniqueFd file = rig.file("out");
    const auto console = rig.console(file.get(), {.pause = std::chrono::milliseconds{20}});
    const int mine = 0;
    ASSERT_TRUE(console->hold(&mine));
    console->write("long", &mine);
    console->write("other\n");
    EXPECT_TRUE(rig.run_until([&] { return !console->holds(&mine); }));
    EXPECT_EQ(rig.written(*console, "out"), "long\nother\n");
}

// At the end of the process the loop does not run any more. 200,000 bytes are more than a pipe
// holds, so the first flush() gives up after its patience; the bytes that it reports are still
// there.
TEST(Console, FlushWritesWithoutTheLoop) {
    Rig rig;
    Ends pipe;
    const auto console = rig.console(pipe.in.get());
    console->write(std::string(200'000, 'x'));
    EXPECT_GT(console->flush(std::chrono::milliseconds{20}), 0U);
    std::size_t got = 0;
    while (console->waiting() > 0) {
        got += pipe.read_now().size();
        console->flush(std::chrono::milliseconds{1});
    }
    EXPECT_EQ(console->flush(std::chrono::seconds{1}), 0U);
    EXPECT_EQ(got + pipe.read_now().size(), 200'000U);
}

// A generation ends and its consoles are destroyed while the file thread still writes. The log must
// have the last lines: they tell why the worker failed.
TEST(Console, AFileGetsAllAlthoughItsConsoleGoes) {
    Rig rig;
    std::string all;
    {
        const auto console = rig.log_file("out");
        for (int i = 0; i < 1000; ++i) {
            console->write(std::to_string(i) + "\n");
            all += std::to_string(i) + "\n";
        }
    }
    EXPECT_TRUE(rig.run_until([&] { return slurp(rig.path("out")) == all; }));
}

// A worker that fails early prints into a file on a full disk, and the job ends before the file
// thread has tried to write. Nothing is on the loop any more; who ends the job tells it. One kind
// of fault is told once in a job.
TEST(Console, AFaultOfAFileIsKeptAlthoughItsConsoleGoes) {
    Rig rig;
    const auto late = std::make_shared<LateFault>();
    const auto lose = [&](const std::string& name) {
        UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
        const auto console = std::make_unique<Console>(rig.io, rig.files, std::move(full), name,
                                                       rig.tell, Console::Options{.late = late});
        console->write("on its way\n");  // handed to the file thread
        console->write("waits\n");
    };
    lose("one");
    lose("two");
    EXPECT_TRUE(rig.files.drain(Rig::kPatience));
    const auto fault = late->take();
    ASSERT_TRUE(fault);
    EXPECT_EQ(
        fault->sentence(),
        "cannot write to one: No space left on device; output that does not fit is discarded");
    EXPECT_FALSE(late->take());
    late->told(ErrorCode::unavailable);
    lose("three");
    EXPECT_TRUE(rig.files.drain(Rig::kPatience));
    EXPECT_FALSE(late->take());
    EXPECT_TRUE(rig.errors.empty());
}

// `ddprun … >log` on a full disk: the last bytes are written at the very end, and are lost then.
TEST(Console, FlushTellsOfAFullDisk) {
    Rig rig;
    const UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
    const auto console = rig.console(full.get());
    console->write("lost\n");
    EXPECT_EQ(console->flush(Rig::kPatience), 0U);
    EXPECT_EQ(console->flush(Rig::kPatience), 0U);
    ASSERT_EQ(rig.errors.size(), 1U);
    EXPECT_EQ(rig.errors[0].code(), ErrorCode::unavailable);
}

// Nobody reads, and 50,000 lines are far more than pipe and limit can hold. Memory stays bounded,
// no writer waits. When the reader is back, it gets whole lines in order, and the operator gets the
// exact number of those that are missing.
TEST(Console, DropsTheOldestLinesWhereTheUserSaysSo) {
    Rig rig;
    Ends slow;
    const auto console = rig.console(slow.in.get(), {.limit = 10'000, .overflow = Overflow::drop});
    constexpr int kLines = 50'000;
    for (int i = 0; i < kLines; ++i) {
        console->write("line " + std::to_string(i) + "\n");
        EXPECT_FALSE(console->full());
        ASSERT_LE(console->waiting(), 10'000U);
    }
    std::string all;
    ASSERT_TRUE(rig.run_until([&] {
        all += slow.read_now();
        return all.ends_with("line " + std::to_string(kLines - 1) + "\n") && rig.errors.size() == 2;
    }));
    int last = -1, lines = 0;
    std::istringstream text(all);
    for (std::string line; std::getline(text, line); ++lines) {
        ASSERT_TRUE(line.starts_with("line ")) << line;
        const int number = std::stoi(line.substr(5));
        ASSERT_EQ(line, "line " + std::to_string(number));
        ASSERT_GT(number, last);
        last = number;
    }
    EXPECT_EQ(rig.errors[0].sentence(),
              "stdout is too slow: 10000 bytes are waiting; the oldest lines are dropped until it "
              "catches up");
    EXPECT_EQ(rig.errors[1].sentence(), std::to_string(kLines - lines) +
                                            " lines for stdout dropped (the oldest), because it "
                                            "was too slow (--console-overflow=drop)");
}

// A reader takes a little and then nothing more. Writers wait until half of the limit is free, so
// the output is still too slow, although it is not quite full any more.
TEST(Console, AReaderThatTakesALittleIsStillTooSlow) {
    Rig rig;
    Ends slow;
    const auto console =
        rig.console(slow.in.get(), {.limit = 100'000, .patience = std::chrono::milliseconds{20}});
    console->write(std::string(200'000, 'x'));
    ASSERT_TRUE(console->full());
    bool room = false;
    console->when_room([&] { room = true; });
    char little[40'000];
    ASSERT_EQ(::read(slow.out.get(), little, sizeof little), 40'000);
    ASSERT_TRUE(rig.run_until([&] { return !console->full(); }));
    EXPECT_TRUE(rig.run_until([&] { return !rig.errors.empty(); }));
    EXPECT_FALSE(room);
}

// The same for a file, whose file system ends one write and hangs in the next.
TEST(Console, AFileThatHangsInItsSecondWriteIsTooSlow) {
    Rig rig;
    Ends hung;
    Console console(rig.io, rig.files, UniqueFd(::dup(hung.in.get())), "out", rig.tell,
                    {.limit = 100'000, .patience = std::chrono::milliseconds{20}});
    console.write(std::string(100'000, 'x'));
    console.write(std::string(150'000, 'y'));
    std::size_t got = 0;
    ASSERT_TRUE(rig.run_until([&] {
        if (console.waiting() > 150'000) got += hung.read_now().size();
        return console.waiting() == 150'000;
    }));
    EXPECT_TRUE(rig.run_until([&] { return !rig.errors.empty(); }));
    EXPECT_TRUE(rig.run_until([&] { return (got += hung.read_now().size()) == 250'000; }));
}

// With `2>&1`, stdout and stderr are one place. Two queues in front of it would mix their lines.
TEST(Console, KnowsWhenTwoNamesAreOnePlace) {
    Rig rig;
    Ends one, two;
    const UniqueFd file = rig.file("a"), again = rig.file("a"), other = rig.file("b");
    EXPECT_TRUE(same_target(one.in.get(), one.in.get()));
    EXPECT_FALSE(same_target(one.in.get(), two.in.get()));
    EXPECT_TRUE(same_target(file.get(), again.get()));
    EXPECT_FALSE(same_target(file.get(), other.get()));
}
