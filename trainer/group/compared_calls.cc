// Opinions and headers.
#include "trainer/group/compared_calls.h"

#include <cstdint>
#include <cstring>
#include <string>

namespace ddprun::trainer {
namespace {

constexpr int kHeader = 1, kData = 2;

}  // namespace

Result<void> compare_calls(const Operation& mine, std::span<const Opinion> all,
                           const JobRanks& job) {
    const Opinion here = opinion_of(mine);
    for (std::size_t other = 0; other < all.size(); ++other)
        if (!(all[other] == here))
            return Error(ErrorCode::refused,
                         disagreement(here, all[other], name_rank(static_cast<int>(other), job)));
    return {};
}

Result<void> call_pairwise(const Operation& o, const JobRanks& job, const Move& move) {
    const bool sends = o.kind != Collective::receive, receives = o.kind != Collective::send;
    const auto some = [](bool moves, const Buffer& buffer) {
        return moves && buffer.count ? std::optional(buffer) : std::nullopt;
    };
    std::uint64_t mine[2] = {o.in.count, static_cast<std::uint64_t>(o.in.type)};
    const std::uint64_t wanted[2] = {o.out.count, static_cast<std::uint64_t>(o.out.type)};
    std::uint64_t theirs[2] = {};
    auto told = move(kHeader, some(sends, {mine, 2, DataType::uint64}),
                     some(receives, {theirs, 2, DataType::uint64}));
    if (!told) return told;
    if (receives && std::memcmp(theirs, wanted, sizeof wanted))
        return Error(ErrorCode::refused,
                     name_rank(o.source, job) + " sends " + std::to_string(theirs[0]) + " " +
                         std::string(to_string(static_cast<DataType>(theirs[1]))) +
                         ", this rank expects " + std::to_string(wanted[0]) + " " +
                         std::string(to_string(o.out.type)));
    return move(kData, some(sends, o.in), some(receives, o.out));
}

}  // namespace ddprun::trainer
