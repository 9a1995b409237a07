// Images of digits, 28 × 28, as MNIST has them: from its IDX files, or generated.
//
// A generated digit is a letter of a coarse font at a place of its own, slanted, with strokes of
// varying strength, holes and noise. It is a function of seed and number, in integers only:
// examples/python/mnist.py makes the same bytes. Pure, except load_digits(). Errors: usage, with
// the file, what is wrong with it, and what to do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace example {

inline constexpr std::int64_t kSide = 28;

struct Digits {
    std::vector<std::uint8_t> images;  // size() × 28 × 28; 0: background
    std::vector<std::uint8_t> labels;  // 0 to 9
    std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }
};

Digits made_digits(std::int64_t count, std::uint64_t seed);

// Reads FOLDER/PREFIX-images-idx3-ubyte and FOLDER/PREFIX-labels-idx1-ubyte. `prefix`: "train" or
// "t10k". The names may have a dot ("PREFIX-images.idx3-ubyte"), and the files may lie in
// FOLDER/MNIST/raw, where torchvision puts them.
ddprun::Result<Digits> load_digits(const std::string& folder, const std::string& prefix);

}  // namespace example
