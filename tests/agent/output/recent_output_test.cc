// The newest text of a worker, and readers who keep up, come late, or stop.
#include "agent/output/recent_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace ddprun::agent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Piece = OutputPiece;

constexpr bool kOut = false, kErr = true;

// A worker that prints, and what its readers have been woken for.
struct Worker {
    std::shared_ptr<RecentOutput> recent = std::make_shared<RecentOutput>();
    int woken = 0;
    std::unique_ptr<OutputReader> reader(std::size_t lines = 20) {
        return std::make_unique<OutputReader>(recent, lines, [this] { ++woken; });
    }
    void out(std::string_view text) { recent->take(kOut, text); }
    void err(std::string_view text) { recent->take(kErr, text); }
};

std::string numbered(int from, int to) {
    std::string text;
    for (int i = from; i < to; ++i) text += "line " + std::to_string(i) + "\n";
    return text;
}

std::string all_of(const std::vector<Piece>& pieces) {
    std::string text;
    for (const Piece& piece : pieces) text += piece.text;
    return text;
}

TEST(RecentOutput, HasTheLastLinesOfBothStreamsInTheirOrder) {
    Worker worker;
    worker.out("one\ntw");
    worker.err("warning\n");
    worker.out("o\nthree\n");
    EXPECT_THAT(
        worker.recent->last_lines(20),
        ElementsAre(Piece{kOut, "one\n"}, Piece{kErr, "warning\n"}, Piece{kOut, "two\nthree\n"}));
    EXPECT_THAT(worker.recent->last_lines(1), ElementsAre(Piece{kOut, "three\n"}));
    EXPECT_THAT(worker.recent->last_lines(0), IsEmpty());
    worker.err("unfinished");
    EXPECT_THAT(worker.recent->last_lines(2),
                ElementsAre(Piece{kOut, "three\n"}, Piece{kErr, "unfinished"}));
}

// 64 KiB are kept. A line of which the beginning is gone is not shown as if it were one.
TEST(RecentOutput, KeepsTheNewestTextAndWholeLines) {
    Worker worker;
    worker.out(numbered(0, 100'000));
    const auto lines = worker.recent->last_lines(1'000'000);
    ASSERT_EQ(lines.size(), 1);
    EXPECT_LE(lines[0].text.size(), RecentOutput::kKept);
    EXPECT_GT(lines[0].text.size(), RecentOutput::kKept - 100);
    EXPECT_TRUE(lines[0].text.starts_with("line "));
    EXPECT_TRUE(lines[0].text.ends_with("line 99999\n"));
}

// Its beginning is gone, but there is nothing else to show.
TEST(RecentOutput, ShowsTheEndOfALineWithoutEnd) {
    Worker worker;
    worker.out("begun\n");
    for (int i = 0; i < 10; ++i) worker.out(std::string(1 << 20, 'x'));
    const auto lines = worker.recent->last_lines(20);
    ASSERT_EQ(lines.size(), 1);
    EXPECT_EQ(lines[0].text, std::string(RecentOutput::kKept, 'x'));
}

TEST(RecentOutput, GivesAReaderWhatComes) {
    Worker worker;
    worker.out("before\n");
    const auto reader = worker.reader();
    EXPECT_THAT(reader->take(1000).pieces, ElementsAre(Piece{kOut, "before\n"}));
    EXPECT_TRUE(reader->take(1000).is_empty());
    worker.out("a");
    worker.err("b");
    EXPECT_EQ(worker.woken, 1) << "once, until it has been looked";
    EXPECT_THAT(reader->take(1000).pieces, ElementsAre(Piece{kOut, "a"}, Piece{kErr, "b"}));
    worker.out("c");
    EXPECT_EQ(worker.woken, 1) << "nobody waits for it yet";
    EXPECT_THAT(reader->take(1000).pieces, ElementsAre(Piece{kOut, "c"}));
    EXPECT_TRUE(reader->take(1000).is_empty());
    worker.recent->end();
    EXPECT_EQ(worker.woken, 2);
    EXPECT_TRUE(reader->take(1000).ended);
}

// All that was printed, in parts, and only then the end.
TEST(RecentOutput, EndsWhenAllHasBeenRead) {
    Worker worker;
    const auto reader = worker.reader();
    worker.out(std::string(2500, 'x'));
    worker.recent->end();
    EXPECT_FALSE(reader->take(1000).ended);
    EXPECT_FALSE(reader->take(1000).ended);
    const auto last = reader->take(1000);
    EXPECT_TRUE(last.ended);
    EXPECT_EQ(last.pieces[0].text.size(), 500);
}

// Every line is either read or counted, whatever the pieces were; the reader goes on at the
// beginning of a line.
TEST(RecentOutput, CountsWhatAStoppedReaderHasLost) {
    for (const std::size_t piece : {std::size_t{7}, std::size_t{4096}, std::size_t{1} << 21}) {
        Worker worker;
        const auto reader = worker.reader();
        const std::string text = numbered(0, 200'000);
        for (std::size_t at = 0; at < text.size(); at += piece)
            worker.out(std::string_view(text).substr(at, piece));
        const auto first = reader->take(1 << 30);
        const std::string read = all_of(first.pieces);
        EXPECT_EQ(first.lost_bytes + read.size(), text.size());
        EXPECT_EQ(first.lost_lines + static_cast<std::uint64_t>(std::ranges::count(read, '\n')),
                  200'000u);
        EXPECT_TRUE(read.starts_with("line ")) << read.substr(0, 20);
        EXPECT_TRUE(text.ends_with(read));
        EXPECT_LE(read.size(), RecentOutput::kReadAlong);
        EXPECT_EQ(reader->take(1000).lost_bytes, 0) << "it is told once";
    }
}

// Half a megabyte may wait for a reader, and the worker's text takes no more, however many read it.
TEST(RecentOutput, KeepsMoreWhileSomebodyReadsAlong) {
    Worker worker;
    worker.out(numbered(0, 10));
    {
        const auto one = worker.reader(0), other = worker.reader(0);
        const std::string burst = numbered(0, 40'000);
        ASSERT_GT(burst.size(), 6 * RecentOutput::kKept);
        ASSERT_LT(burst.size(), RecentOutput::kReadAlong);
        for (std::size_t at = 0; at < burst.size(); at += 65536)
            worker.out(std::string_view(burst).substr(at, 65536));
        for (const auto& reader : {one.get(), other.get()}) {
            const auto text = reader->take(1 << 30);
            EXPECT_EQ(text.lost_bytes, 0);
            EXPECT_EQ(all_of(text.pieces), burst);
        }
    }
    // Nobody reads it any more.
    const auto late = worker.reader(1'000'000);
    EXPECT_LE(all_of(late->take(1 << 30).pieces).size(), RecentOutput::kKept);
    worker.out("after\n");
    EXPECT_EQ(all_of(late->take(1 << 30).pieces), "after\n");
}

// A reader of before does not see the end of a line for its beginning.
TEST(RecentOutput, CountsALineThatIsLostInPart) {
    Worker worker;
    const auto reader = worker.reader();
    worker.out(std::string(RecentOutput::kReadAlong, 'x') + "y\nnext\n");
    const auto text = reader->take(1 << 30);
    EXPECT_EQ(all_of(text.pieces), "next\n");
    EXPECT_EQ(text.lost_lines, 1);
    EXPECT_EQ(text.lost_bytes, RecentOutput::kReadAlong + 2);
}

// The order of two streams that take turns with each byte costs memory, too.
TEST(RecentOutput, ForgetsTextWhoseStreamsChangeTooOften) {
    Worker worker;
    for (int i = 0; i < 30'000; ++i) {
        worker.out("o");
        worker.err("e");
    }
    EXPECT_LE(worker.recent->last_lines(20).size(), 2);
    const auto reader = worker.reader(0);
    for (int i = 0; i < 30'000; ++i) {
        worker.out("o");
        worker.err("\n");
    }
    const auto text = reader->take(1 << 30);
    EXPECT_LE(text.pieces.size(), RecentOutput::kChanges);
    EXPECT_EQ(text.lost_bytes + all_of(text.pieces).size(), 60'000);
    EXPECT_EQ(
        text.lost_lines + static_cast<std::uint64_t>(std::ranges::count(all_of(text.pieces), '\n')),
        30'000);
}

// Random pieces and readers against a plain string of all that was ever printed.
TEST(RecentOutput, IsRightWhateverComes) {
    for (unsigned seed = 0; seed < 10; ++seed) {
        std::mt19937 random(seed);
        const auto below = [&random](unsigned limit) { return random() % limit; };
        Worker worker;
        std::string out, err, read_out, read_err;
        bool lost = false;
        worker.out(std::string(below(200'000), 'b'));
        const auto reader = worker.reader(0);
        for (int step = 0; step < 300; ++step) {
            std::string text(below(step % 50 == 49 ? 700'000 : 3000), '.');
            for (char& each : text)
                each = below(30) == 0 ? '\n' : static_cast<char>('a' + below(26));
            const bool is_err = below(3) == 0;
            worker.recent->take(is_err, text);
            (is_err ? err : out) += text;
            if (below(3) != 0) continue;
            const auto taken = reader->take(1 + below(100'000));
            lost |= taken.lost_bytes > 0;
            if (taken.lost_bytes > 0) read_out.clear(), read_err.clear();
            for (const Piece& piece : taken.pieces)
                (piece.is_err ? read_err : read_out) += piece.text;
        }
        for (rendezvous::WorkerText text; !(text = reader->take(65536)).is_empty();) {
            lost |= text.lost_bytes > 0;
            if (text.lost_bytes > 0) read_out.clear(), read_err.clear();
            for (const Piece& piece : text.pieces)
                (piece.is_err ? read_err : read_out) += piece.text;
        }
        // After the last gap nothing is missing or twice; without one, all is there.
        EXPECT_TRUE(out.ends_with(read_out)) << seed;
        EXPECT_TRUE(err.ends_with(read_err)) << seed;
        const bool all_is_read = read_out.size() + read_err.size() == out.size() + err.size();
        EXPECT_TRUE(lost || all_is_read) << seed;
    }
}

}  // namespace
}  // namespace ddprun::agent
