// The bytes that wait for a slow reader, and which lines are dropped when there are too many. The
// pure queue: no descriptor, no reader.
#include "agent/output/byte_queue.h"

#include <gtest/gtest.h>

#include <random>
#include <sstream>

using namespace ddprun::agent;

namespace {

// What would be written, in one text.
std::string joined(const std::vector<std::string>& pieces) {
    std::string all;
    for (const std::string& piece : pieces) all += piece;
    return all;
}

}  // namespace

// Where nothing is dropped, not a byte is lost, and the size is right after each step.
TEST(ByteQueue, GivesBackWhatItGot) {
    ByteQueue queue;
    queue.append("one ");
    queue.append("two");
    queue.consume(1);
    EXPECT_EQ(queue.front().substr(0, 2), "ne");
    EXPECT_EQ(queue.size(), 6U);
    EXPECT_EQ(joined(queue.take_all()), "ne two");
    EXPECT_EQ(queue.size(), 0U);
    EXPECT_EQ(queue.front(), "");
}

// With --console-overflow=drop old lines give way to new ones. 13 bytes are just the last two
// lines.
TEST(ByteQueue, DropsWholeLinesFromTheFront) {
    ByteQueue queue;
    queue.append("first\nsecond\nthird\n");
    EXPECT_EQ(queue.drop_oldest(100), 0U);
    EXPECT_EQ(queue.drop_oldest(13), 1U);
    EXPECT_EQ(joined(queue.take_all()), "second\nthird\n");
}

// Two bytes of the first line have left. Its rest stays, although it is the oldest, because the
// reader must never see half a line. The second line goes instead.
TEST(ByteQueue, FinishesTheLineThatHasBegunToLeave) {
    ByteQueue queue;
    queue.append("first\nsecond\nthird\n");
    queue.consume(2);
    EXPECT_EQ(queue.drop_oldest(12), 1U);
    EXPECT_EQ(joined(queue.take_all()), "rst\nthird\n");
}

// A line is dropped before its end has come. The rest of it, which comes later, must not appear as
// a line of its own.
TEST(ByteQueue, ALineWithoutAnEndGoesWithItsRest) {
    ByteQueue queue;
    queue.append("a line whose end has not");
    EXPECT_EQ(queue.drop_oldest(4), 1U);
    queue.append(" come yet");
    queue.append(" has now\nnext\n");
    EXPECT_EQ(joined(queue.take_all()), "next\n");
}

// Here the line has begun to leave and its end has not come. It gets a line end where it was cut,
// so that the next line does not stick to it.
TEST(ByteQueue, AnEndlessLineThatHasBegunIsEnded) {
    ByteQueue queue;
    queue.append("endless");
    queue.consume(3);
    EXPECT_EQ(queue.drop_oldest(2), 1U);
    queue.append("more\nnext\n");
    EXPECT_EQ(joined(queue.take_all()), "\nnext\n");
}

// Lines come in pieces and are taken and dropped at random, with 200 seeds. What comes out is whole
// lines in order. Lines that came and lines that were counted as dropped are all lines: the number
// that the operator reads is right.
TEST(ByteQueue, LosesAndTearsNothingUncounted) {
    for (unsigned seed = 0; seed < 200; ++seed) {
        std::mt19937 random(seed);
        const auto upto = [&random](std::size_t most) { return random() % (most + 1); };
        ByteQueue queue;
        std::string input, output;
        const int lines = 300;
        for (int i = 0; i < lines; ++i)
            input += std::to_string(i) + " " + std::string(upto(60), 'x') + "\n";
        std::size_t dropped = 0;
        while (!input.empty() || queue.size() > 0) {
            const std::size_t piece = std::min(upto(100), input.size());
            queue.append(input.substr(0, piece));
            input.erase(0, piece);
            if (upto(3) == 0) {
                // At least 64: a line has at most 65 bytes, so the rest of one that has begun
                // always fits.
                const std::size_t limit = 64 + upto(500);
                dropped += queue.drop_oldest(limit);
                ASSERT_LE(queue.size(), limit);
            }
            const std::size_t gone = upto(queue.front().size());
            output += queue.front().substr(0, gone);
            queue.consume(gone);
        }
        std::istringstream text(output);
        int last = -1, came = 0;
        for (std::string line; std::getline(text, line); ++came) {
            const int number = std::stoi(line);
            ASSERT_GT(number, last) << "seed " << seed;
            last = number;
        }
        EXPECT_EQ(static_cast<std::size_t>(came) + dropped, static_cast<std::size_t>(lines))
            << "seed " << seed;
    }
}
