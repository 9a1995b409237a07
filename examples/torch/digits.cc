// Draws digits, and reads IDX files.
#include "examples/torch/digits.h"

#include <filesystem>

#include "base/hexadecimal.h"
#include "examples/random.h"
#include "trainer/snapshot/format/durable_file.h"

namespace example {

using ddprun::Result;
using ddprun::usage_error;

namespace {

// Seven rows of five dots for each digit; the highest of the five bits is on the left.
constexpr std::uint8_t kFont[10][7] = {{14, 17, 17, 17, 17, 17, 14}, {4, 12, 4, 4, 4, 4, 14},
                                       {14, 17, 1, 6, 8, 16, 31},    {14, 17, 1, 6, 1, 17, 14},
                                       {2, 6, 10, 18, 31, 2, 2},     {31, 16, 30, 1, 1, 17, 14},
                                       {6, 8, 16, 30, 17, 17, 14},   {31, 1, 2, 4, 8, 8, 8},
                                       {14, 17, 17, 14, 17, 17, 14}, {14, 17, 17, 15, 1, 2, 12}};
// A dot is 3 × 3 pixels.
constexpr std::int64_t kDot = 3, kWidth = 5 * kDot, kHeight = 7 * kDot;

// The shape of one digit, from a well mixed number.
struct Pen {
    explicit Pen(std::uint64_t random)
        : label(random % 10),
          left(static_cast<std::int64_t>(random >> 8 & 255) % 12),
          top(static_cast<std::int64_t>(random >> 16 & 255) % 8),
          slant(static_cast<std::int64_t>(random >> 24 & 255) % 5 - 2),
          ink(static_cast<std::uint8_t>(160 + (random >> 32 & 255) % 96)) {}

    // Whether the stroke covers a pixel. The slant moves the lower rows against the upper ones.
    bool covers(std::int64_t y, std::int64_t x) const {
        const std::int64_t row = y - top;
        if (row < 0 || row >= kHeight) return false;
        const std::int64_t column = x - left - ((row * slant + 42) / kHeight - 2);
        if (column < 0 || column >= kWidth) return false;
        return kFont[label][row / kDot] >> (4 - column / kDot) & 1;
    }
    std::uint64_t label;
    std::int64_t left, top, slant;
    std::uint8_t ink;
};

// The file under the first of its names that is there, packed or not: that of MNIST's page, or with
// a dot, as many archives have it; in the folder, or where torchvision puts it. If there is none,
// the first name, for the error.
std::string path_of(const std::string& folder, const std::string& stem, const std::string& kind) {
    namespace fs = std::filesystem;
    std::error_code none;
    // Some archives have folders with the names of the files.
    const auto is_file = [&](const std::string& path) { return fs::is_regular_file(path, none); };
    for (const char* inside : {"/", "/MNIST/raw/"})
        for (const char* mark : {"-", "."}) {
            const std::string path = folder + inside + stem + mark + kind;
            if (is_file(path) || is_file(path + ".gz")) return path;
        }
    return folder + "/" + stem + "-" + kind;
}

Result<std::string> read_whole(const std::string& path) {
    auto content = ddprun::trainer::read_text(path);
    std::error_code none;
    if (!content && std::filesystem::exists(path + ".gz", none))
        return usage_error(path + " is still packed; unpack it: gunzip " + path + ".gz");
    if (!content)
        return usage_error(content.error().sentence() + "; --data needs MNIST's four files");
    if (content->starts_with("\x1f\x8b"))
        return usage_error(path + " is packed in spite of its name; unpack it: mv " + path + " " +
                           path + ".gz && gunzip " + path + ".gz");
    return content;
}

// The content of an IDX file of bytes with these sizes; 0: any size above it. The file has a number
// for the type and one for each dimension, highest byte first, and then the content.
Result<std::string> read_idx(const std::string& path, const std::vector<std::uint32_t>& sizes) {
    auto file = read_whole(path);
    if (!file) return file.error();
    const auto number = [&](std::size_t i) {
        std::uint32_t value = 0;
        for (std::size_t k = 0; k < 4; ++k)
            value = value << 8 | static_cast<std::uint8_t>((*file)[4 * i + k]);
        return value;
    };
    const auto wrong = [&](const std::string& what) { return usage_error(path + " " + what); };
    const std::size_t dimensions = sizes.size(), head = 4 * (1 + dimensions);
    if (file->size() < head)
        return wrong("has " + std::to_string(file->size()) + " bytes, fewer than the " +
                     std::to_string(head) + " of its head; copy it again");
    const auto kind = static_cast<std::uint32_t>(0x800 + dimensions);
    if (number(0) != kind)
        return wrong("is no IDX file of bytes with " + std::to_string(dimensions) +
                     " dimension(s): it begins with 0x" + ddprun::hexadecimal(number(0), 8) +
                     ", not with 0x" + ddprun::hexadecimal(kind, 8) +
                     "; take MNIST's file of this name");
    std::uint64_t bytes = 1;
    for (std::size_t i = 0; i < dimensions; ++i) bytes *= number(i + 1);
    if (!number(1)) return wrong("is empty; take MNIST's file of this name");
    for (std::size_t i = 1; i < dimensions; ++i)
        if (number(i + 1) != sizes[i])
            return wrong("has images of " + std::to_string(number(2)) + " x " +
                         std::to_string(number(3)) + " pixels, not 28 x 28; scale them");
    if (file->size() - head != bytes)
        return wrong("has " + std::to_string(file->size() - head) + " bytes of data, not " +
                     std::to_string(bytes) + "; copy it again");
    return file->substr(head);
}

}  // namespace

Digits made_digits(std::int64_t count, std::uint64_t seed) {
    Digits made;
    made.images.reserve(static_cast<std::size_t>(count * kSide * kSide));
    for (std::int64_t i = 0; i < count; ++i) {
        const Pen pen(mix(seed, static_cast<std::uint64_t>(i)));
        made.labels.push_back(static_cast<std::uint8_t>(pen.label));
        for (std::int64_t at = 0; at < kSide * kSide; ++at) {
            const auto noise = mix(seed + 1, static_cast<std::uint64_t>(i * kSide * kSide + at));
            const bool hole = (noise >> 8 & 7) == 0;
            const bool ink = !hole && pen.covers(at / kSide, at % kSide);
            made.images.push_back(ink ? pen.ink : static_cast<std::uint8_t>(noise & 63));
        }
    }
    return made;
}

Result<Digits> load_digits(const std::string& folder, const std::string& prefix) {
    const std::string images_path = path_of(folder, prefix + "-images", "idx3-ubyte"),
                      labels_path = path_of(folder, prefix + "-labels", "idx1-ubyte");
    auto images = read_idx(images_path, {0, kSide, kSide});
    if (!images) return images.error();
    auto labels = read_idx(labels_path, {0});
    if (!labels) return labels.error();
    if (images->size() != labels->size() * kSide * kSide)
        return usage_error(images_path + " has " +
                           std::to_string(images->size() / (kSide * kSide)) + " images and " +
                           labels_path + " has " + std::to_string(labels->size()) +
                           " labels; take both files from one place");
    Digits digits;
    digits.images.assign(images->begin(), images->end());
    digits.labels.assign(labels->begin(), labels->end());
    for (std::size_t i = 0; i < digits.labels.size(); ++i)
        if (digits.labels[i] > 9)
            return usage_error(labels_path + " has the label " + std::to_string(digits.labels[i]) +
                               " at place " + std::to_string(i) +
                               ", not one of 0 to 9; copy it again");
    return digits;
}

}  // namespace example
