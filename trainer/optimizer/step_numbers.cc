// Adds up a checksum, and compares those of all ranks.
#include "trainer/optimizer/step_numbers.h"

#include <cstring>

#include "trainer/checksum/checksum.h"
#include "trainer/snapshot/format/metadata.h"

namespace ddprun::trainer {
namespace {

constexpr std::uint64_t kEach = 3, kEvery = 16;
constexpr std::size_t kStep = 1, kRate = 2, kClip = 3;  // behind the checksum

bool same_bits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

std::string rate_text(double rate) { return text_of(static_cast<float>(rate)); }

std::string clip_text(double clip) {
    return clip == 0 ? "clips no gradients" : "clips gradients to a norm of " + text_of(clip);
}

}  // namespace

// A double holds 52 bits of the checksum exactly.
void StepNumbers::add(std::int64_t step, float rate, double clip) {
    words_ = {words_[0], static_cast<double>(step), rate, clip};
    words_[0] = static_cast<double>(hash_of(std::as_bytes(std::span(words_))) >> 12);
    ++steps_;
}

bool StepNumbers::due() const { return steps_ <= kEach || steps_ % kEvery == 0; }

std::optional<Difference> first_difference(std::span<const double> all, std::size_t each) {
    for (std::size_t rank = 1; rank * each < all.size(); ++rank)
        for (std::size_t i = 0; i < each; ++i)
            if (!same_bits(all[rank * each + i], all[i])) return Difference{rank, i};
    return std::nullopt;
}

// The checksum comes first among the words, and says least.
std::optional<std::string> step_disagreement(std::span<const double> all) {
    const auto found = first_difference(all, StepNumbers::kWords);
    if (!found) return std::nullopt;
    const auto first = all.first(StepNumbers::kWords),
               other = all.subspan(found->rank * StepNumbers::kWords, StepNumbers::kWords);
    const std::string who = "rank " + std::to_string(found->rank),
                      advice = "; all ranks must make the same steps of a ShardedOptimizer";
    const auto step = [](double number) {
        return "step " + text_of(static_cast<std::int64_t>(number));
    };
    if (!same_bits(first[kStep], other[kStep]))
        return who + " makes " + step(other[kStep]) + " of its optimizer, and rank 0 " +
               step(first[kStep]) + advice + "; have they loaded different states?";
    if (!same_bits(first[kRate], other[kRate]))
        return who + " makes " + step(first[kStep]) + " with the rate " + rate_text(other[kRate]) +
               ", and rank 0 with " + rate_text(first[kRate]) + advice;
    if (!same_bits(first[kClip], other[kClip]))
        return "in " + step(first[kStep]) + " " + who + " " + clip_text(other[kClip]) +
               ", and rank 0 " + clip_text(first[kClip]) + advice;
    return who + " has made a step before " + step(first[kStep]) +
           " with another rate, or another norm of clipping, than rank 0" + advice;
}

}  // namespace ddprun::trainer
