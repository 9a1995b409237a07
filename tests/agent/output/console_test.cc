// The consoles: a pipe, a file, slow, full or closed.
#include "agent/output/console.h"

#include <sys/socket.h>

#include "tests/agent/output/output_rig.h"

using namespace ddprun;
using namespace ddprun::agent;

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

// Who has a line that is too long to be kept has the console to itself until its end.
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
    console->release(&yours);
    EXPECT_TRUE(console->holds(&mine));
    console->release(&mine);
    EXPECT_FALSE(console->holds(&mine));
    EXPECT_EQ(rig.written(*console, "out"), "a long line\nyours\nanybody's\n");
}

// But not when too much would wait, nor at the end.
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
    ASSERT_TRUE(console->hold(&mine));
    console->write("half", &mine);
    console->write("other\n");
    EXPECT_EQ(rig.written(*console, "out"), "long\n12345\n67890\nhalf\nother\n");
    Ends pipe;
    EXPECT_FALSE(rig.console(pipe.in.get(), {.overflow = Overflow::drop})->hold(&mine));
}

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

// What a file has not got when its console goes, it gets still.
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

// Whole lines go, the oldest first; the line that has begun to leave is finished; what went is
// counted when the reader is back.
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

TEST(Console, KnowsWhenTwoNamesAreOnePlace) {
    Rig rig;
    Ends one, two;
    const UniqueFd file = rig.file("a"), again = rig.file("a"), other = rig.file("b");
    EXPECT_TRUE(same_target(one.in.get(), one.in.get()));
    EXPECT_FALSE(same_target(one.in.get(), two.in.get()));
    EXPECT_TRUE(same_target(file.get(), again.get()));
    EXPECT_FALSE(same_target(file.get(), other.get()));
}
