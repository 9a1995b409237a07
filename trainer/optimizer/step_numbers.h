// StepNumbers: whether all ranks make the same steps of an optimizer. A rank that updates its part
// with another rate than the rest makes wrong weights, and nothing else shows it.
//
// Each rank keeps a checksum over the numbers of all its steps. It is compared after each of the
// first three steps, and then after every 16th: so a difference in any step is found, at the latest
// 16 steps later, and the comparison costs next to nothing. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace ddprun::trainer {

class StepNumbers {
  public:
    // What travels: the checksum, and the numbers of the newest step.
    static constexpr std::size_t kWords = 4;
    using Words = std::array<double, kWords>;

    // A step: its number, its rate, and the norm to which its gradients were clipped; 0: they were
    // not.
    void add(std::int64_t step, float rate, double clip);
    // Whether the ranks compare after this step.
    bool due() const;
    const Words& words() const { return words_; }

  private:
    Words words_{};
    std::uint64_t steps_ = 0;
};

// The first rank that differs from rank 0, and the number in which it does. `all`: so many numbers
// of each rank, in the order of the ranks. Compares bits: a NaN is equal to itself.
struct Difference {
    std::size_t rank = 0, index = 0;
};
std::optional<Difference> first_difference(std::span<const double> all, std::size_t each);

// Says in what the ranks differ. `all`: the Words of all ranks. Empty: they agree.
std::optional<std::string> step_disagreement(std::span<const double> all);

}  // namespace ddprun::trainer
