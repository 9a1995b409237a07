// XXH3 in all its compiled kinds. A snapshot is written on one machine and read on another.
#include "trainer/checksum/checksum.h"

#include <gtest/gtest.h>

#include <vector>

#include "trainer/checksum/checksum_kinds.h"

namespace ddprun::trainer {
namespace {

std::vector<std::byte> bytes_of(std::size_t count) {
    std::vector<std::byte> bytes(count);
    for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 131 + i / 251);
    return bytes;
}

TEST(Checksum, IsXxh3) {
    EXPECT_EQ(checksum_of({}), "2d06800538d394c2");
    const std::string text = "xxhash";
    Checksum checksum;
    checksum.add(std::as_bytes(std::span(text)));
    EXPECT_EQ(checksum.text(), checksum_of(std::as_bytes(std::span(text))));
}

// In one piece and in several, of all lengths that XXH3 treats differently.
TEST(Checksum, IsTheSameInPieces) {
    for (std::size_t count : {1, 16, 17, 128, 129, 240, 241, 1024, 1025, 4097, 300000}) {
        const auto bytes = bytes_of(count);
        Checksum checksum;
        for (std::size_t at = 0, piece = 1; at < count; at += piece, piece = piece * 3 + 1)
            checksum.add(std::span(bytes).subspan(at, std::min(piece, count - at)));
        EXPECT_EQ(checksum.text(), checksum_of(bytes)) << count;
    }
}

std::vector<const ChecksumKind*> kinds() {
    std::vector<const ChecksumKind*> all{&checksum_for_any()};
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2")) all.push_back(&checksum_for_avx2());
#endif
    return all;
}

TEST(Checksum, IsTheSameOnEachProcessor) {
    for (std::size_t count = 0; count < 3000; ++count) {
        const auto bytes = bytes_of(count);
        const auto number = hash_of(bytes);
        for (const ChecksumKind* kind : kinds()) {
            ASSERT_EQ(kind->whole(bytes.data(), count), number) << count;
            void* state = kind->make();
            kind->add(state, bytes.data(), count);
            ASSERT_EQ(kind->number(state), number) << count;
            kind->free(state);
        }
    }
}

}  // namespace
}  // namespace ddprun::trainer
