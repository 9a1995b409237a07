// Samples of memories: what is read in which turn.
#include "trainer/checksum/hash_sample.h"

#include <gtest/gtest.h>

#include <set>

namespace ddprun::trainer {
namespace {

// Memories of these sizes, and which of their blocks were read.
struct Memories {
    explicit Memories(const std::vector<std::size_t>& all) : sizes(all) {
        for (const std::size_t size : sizes) bytes.emplace_back(size, std::byte{7});
    }
    std::vector<std::uint64_t> hash(std::uint64_t turn, std::size_t most) {
        read_bytes = 0;
        return hash_sample(sizes, turn, most,
                           [&](std::size_t i, std::size_t first,
                               std::size_t count) -> Result<std::span<const std::byte>> {
                               read.insert({i, first});
                               read_bytes += count;
                               return std::span<const std::byte>(bytes[i]).subspan(first, count);
                           })
            .value();
    }
    std::vector<std::size_t> sizes;
    std::vector<std::vector<std::byte>> bytes;
    std::set<std::pair<std::size_t, std::size_t>> read;
    std::size_t read_bytes = 0;
};

constexpr std::size_t kMiB = std::size_t{1} << 20;

TEST(HashSample, ReadsEverythingIfThatIsLittle) {
    Memories memories({kMiB + 1, 0, 4});
    const auto before = memories.hash(3, 2 * kMiB);
    EXPECT_EQ(memories.read_bytes, kMiB + 5);
    EXPECT_EQ(before[1], 0u);
    for (const std::size_t at : {std::size_t{0}, kMiB / 2, kMiB}) {
        memories.bytes[0][at] ^= std::byte{1};
        const auto after = memories.hash(3, 2 * kMiB);
        EXPECT_NE(after[0], before[0]) << at;
        EXPECT_EQ(after[2], before[2]);
        memories.bytes[0][at] ^= std::byte{1};
    }
    EXPECT_EQ(memories.hash(3, 2 * kMiB), before);
}

// A sixteenth each time, and after sixteen turns all of it. Small memories are read each time.
TEST(HashSample, ReadsAllInTurns) {
    Memories memories({5 * kMiB, 11 * kMiB, 100});
    for (std::uint64_t turn = 1; turn <= 16; ++turn) {
        memories.bytes[2][5] ^= std::byte{1};
        const auto before = memories.hash(turn, kMiB + 10);
        EXPECT_LE(memories.read_bytes, kMiB + (std::size_t{64} << 10) + 100);
        memories.bytes[2][5] ^= std::byte{1};
        EXPECT_NE(memories.hash(turn, kMiB + 10)[2], before[2]);
    }
    EXPECT_EQ(memories.read.size(), 16 * 16 + 1u);
}

TEST(HashSample, ReturnsTheErrorOfARead) {
    const auto failing = [](std::size_t, std::size_t, std::size_t) {
        return Result<std::span<const std::byte>>(Error(ErrorCode::unavailable, "gone"));
    };
    const auto hashes = hash_sample({10}, 0, kMiB, failing);
    ASSERT_FALSE(hashes);
    EXPECT_EQ(hashes.error().sentence(), "gone");
}

}  // namespace
}  // namespace ddprun::trainer
