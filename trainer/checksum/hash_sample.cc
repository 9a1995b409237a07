// Chooses blocks, evenly over all memories.
#include "trainer/checksum/hash_sample.h"

#include <algorithm>

#include "trainer/checksum/checksum.h"

namespace ddprun::trainer {
namespace {

constexpr std::size_t kBlock = std::size_t{64} << 10;
constexpr std::size_t kSmall = std::size_t{4} << 10;  // always read

}  // namespace

Result<std::vector<std::uint64_t>> hash_sample(const std::vector<std::size_t>& sizes,
                                               std::uint64_t turn, std::size_t most,
                                               const ReadBytes& read) {
    std::uint64_t bytes = 0, block = 0;
    for (const std::size_t size : sizes) bytes += size;
    // Every n-th block, counted over all memories.
    const std::uint64_t n = std::max<std::uint64_t>((bytes + most - 1) / most, 1);
    std::vector<std::uint64_t> hashes(sizes.size());
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        for (std::size_t first = 0; first < sizes[i]; first += kBlock, ++block) {
            if (sizes[i] > kSmall && block % n != turn % n) continue;
            const auto part = read(i, first, std::min(kBlock, sizes[i] - first));
            if (!part) return part.error();
            const std::uint64_t both[] = {hashes[i], hash_of(*part)};
            hashes[i] = hash_of(std::as_bytes(std::span(both)));
        }
    }
    return hashes;
}

}  // namespace ddprun::trainer
