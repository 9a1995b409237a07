// What tensor_parallel and pipeline learn: samples that are a function of their place, so nothing
// has to be read, and the step is the whole position in the data. Pure.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "examples/parallel/block_stack.h"
#include "examples/random.h"

namespace example {

// The inputs of samples `first` to `first + count`: count × kWidth.
inline std::vector<float> inputs_of(std::int64_t first, std::int64_t count) {
    std::vector<float> x(static_cast<std::size_t>(count) * kWidth);
    const auto place = static_cast<std::uint64_t>(first) * kWidth;
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = uniform(99, place + i);
    return x;
}

// Adds the mean squared error of these outputs to `loss`, as its share of a mean over `samples`,
// and returns its derivative. What is to be learned: x_i plus half the sine of thrice the input
// seven places away.
inline std::vector<float> slope_of(std::span<const float> x, std::span<const float> output,
                                   std::int64_t samples, double& loss) {
    const float numbers = static_cast<float>(samples) * kWidth;
    std::vector<float> slope(output.size());
    for (std::size_t i = 0; i < output.size(); ++i) {
        const float other = x[i / kWidth * kWidth + (i + 7) % kWidth];
        const float error = output[i] - x[i] - std::sin(3 * other) / 2;
        loss += static_cast<double>(error) * static_cast<double>(error / numbers);
        slope[i] = 2 * error / numbers;
    }
    return slope;
}

}  // namespace example
