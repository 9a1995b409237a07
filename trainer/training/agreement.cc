// Puts each question into a few numbers and all-reduces them.
#include "trainer/training/agreement.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "trainer/checksum/checksum.h"
#include "trainer/checksum/hash_sample.h"
#include "trainer/gpu/gpu.h"
#include "trainer/group/rank_names.h"
#include "trainer/worker/progress.h"

namespace ddprun::trainer {

Result<WeightedMean> mean_over_ranks(ProcessGroup& group, const WeightedMean& mine) {
    // Sums and weights are added, and divided only at the end. A mean of means would be wrong if
    // the weights differ.
    double values[] = {mine.sum(), mine.weight()};
    if (auto done = group.all_reduce_values(values); !done) return done.error();
    return WeightedMean::of(values[0], values[1]);
}

Result<bool> any_rank(ProcessGroup& group, bool mine) {
    double value[] = {mine ? 1.0 : 0.0};
    if (auto done = group.all_reduce_values(value, ReduceOp::max); !done) return done.error();
    return value[0] > 0;
}

// The numbers of requests are far below 2^53, up to which a double is exact.
Result<Asked> asked_of_any(ProcessGroup& group, const Asked& mine) {
    double values[] = {mine.stop ? 1.0 : 0.0, static_cast<double>(mine.snapshot)};
    if (auto done = group.all_reduce_values(values, ReduceOp::max); !done) return done.error();
    return Asked{values[0] > 0, static_cast<std::int64_t>(values[1])};
}

Result<std::vector<double>> values_of_ranks(ProcessGroup& group, double mine) {
    // Each rank fills its own place in a vector of zeros, so the sum holds all values.
    std::vector<double> values(static_cast<std::size_t>(group.size()));
    values[static_cast<std::size_t>(group.rank())] = mine;
    if (auto done = group.all_reduce_values(values); !done) return done.error();
    return values;
}

namespace {

// What these calls are named in messages, and told apart by from those of other callers.
constexpr char kReplicas[] = "equal replicas";

// The collectives used here move doubles. A double holds 52 bits of a checksum exactly.
double number_of(std::uint64_t hash) { return static_cast<double>(hash >> 12); }

// The checksum of a buffer. XXH3 runs on the host, so a buffer on the GPU is copied there first.
Result<double> checksum_number(Memory memory, const Buffer& buffer) {
    if (memory == Memory::host)
        return number_of(hash_of({static_cast<const std::byte*>(buffer.data), buffer.bytes()}));
    std::vector<std::byte> copy(buffer.bytes());
    if (auto done = gpu_copy(copy.data(), buffer.data, copy.size()); !done) return done.error();
    return number_of(hash_of(copy));
}

// The first of several numbers that is not the same on all ranks.
struct Difference {
    std::size_t index;
    int first = 0;            // the lowest rank that has the number of the most ranks
    std::vector<int> ranks;   // those that have another one
    std::vector<double> all;  // the number of each rank; NaN: it is not compared

    double of(int rank) const { return all[static_cast<std::size_t>(rank)]; }
    Error error(const std::string& what) const {
        return {ErrorCode::refused, what + " is not the same on " + name_ranks(ranks) +
                                        " as on rank " + std::to_string(first)};
    }
    // `text(rank)`: what a rank has.
    template <class Text>
    Error error(const std::string& what, const Text& text) const {
        const auto says = [&](int rank) {
            return "rank " + std::to_string(rank) + ": " + text(rank);
        };
        const int low = std::min(first, ranks.front()), high = std::max(first, ranks.front());
        return {ErrorCode::refused,
                error(what).sentence() + " (" + says(low) + ", " + says(high) + ")"};
    }
};

Difference difference(std::size_t index, std::vector<double> all) {
    Difference found{index, 0, {}, std::move(all)};
    const auto count = [&](double number) {
        return std::count(found.all.begin(), found.all.end(), number);
    };
    const int size = static_cast<int>(found.all.size());
    for (int rank = 0; rank < size; ++rank)
        if (count(found.of(rank)) > count(found.of(found.first))) found.first = rank;
    for (int rank = 0; rank < size; ++rank)
        if (!std::isnan(found.of(rank)) && found.of(rank) != found.of(found.first))
            found.ranks.push_back(rank);
    return found;
}

// If maximum and minimum (the negative of the negatives' maximum) are equal, all ranks have this
// number. All ranks see the same ones, so all of them ask for the values of the first one that
// differs. All return the same difference, so none of them is left alone in a later collective
// call. A rank that is not compared is below every maximum.
Result<std::optional<Difference>> find_difference(ProcessGroup& group,
                                                  const std::vector<double>& mine,
                                                  bool compared = true) {
    constexpr double kNone = -std::numeric_limits<double>::infinity();
    std::vector<double> most;
    for (const double number : mine) {
        most.push_back(compared ? number : kNone);
        most.push_back(compared ? -number : kNone);
    }
    if (auto done = group.all_reduce_values(most, ReduceOp::max, kReplicas); !done)
        return done.error();
    for (std::size_t i = 0; i < mine.size(); ++i) {
        if (most[2 * i] == -most[2 * i + 1] || most[2 * i] == kNone) continue;
        auto all = values_of_ranks(group, compared ? mine[i] : std::nan(""));
        if (!all) return all.error();
        return std::optional(difference(i, std::move(*all)));
    }
    return std::optional<Difference>();
}

std::string whole(double number) { return std::to_string(static_cast<std::uint64_t>(number)); }

}  // namespace

Result<void> verify_equal(ProcessGroup& group, std::span<const NamedBuffer> buffers) {
    std::vector<double> mine;
    for (const auto& named : buffers) {
        auto number = checksum_number(group.memory(), named.buffer);
        if (!number) return number.error();
        mine.push_back(*number);
    }
    auto found = find_difference(group, mine);
    if (!found) return found.error();
    if (*found) return (*found)->error("the content of \"" + buffers[(*found)->index].name + "\"");
    return {};
}

// One number for all of them first.
Result<void> verify_replicas(ProcessGroup& group, std::span<const NamedBuffer> buffers,
                             std::uint64_t turn, bool compared) {
    const bool on_gpu = group.memory() == Memory::gpu;
    std::vector<std::size_t> sizes;
    for (const auto& named : buffers) sizes.push_back(compared ? named.buffer.bytes() : 0);
    std::vector<std::byte> copy;
    const auto read = [&](std::size_t index, std::size_t first,
                          std::size_t count) -> Result<std::span<const std::byte>> {
        const auto* at = static_cast<const std::byte*>(buffers[index].buffer.data) + first;
        if (!on_gpu) return std::span(at, count);
        copy.resize(std::max(copy.size(), count));
        if (auto done = gpu_copy(copy.data(), at, count); !done) return done.error();
        return std::span<const std::byte>(copy.data(), count);
    };
    auto hashes = hash_sample(sizes, turn, on_gpu ? kSmallSample : kLargeSample, read);
    if (!hashes) return hashes.error();
    const double all = number_of(hash_of(std::as_bytes(std::span(*hashes))));
    auto found = find_difference(group, {all}, compared);
    if (!found) return found.error();
    if (!*found) return {};
    std::vector<double> mine;
    for (const std::uint64_t hash : *hashes) mine.push_back(number_of(hash));
    found = find_difference(group, mine, compared);
    if (!found) return found.error();
    if (!*found) return Error(ErrorCode::refused, "the ranks have other buffers");
    return (*found)->error("the content of \"" + buffers[(*found)->index].name + "\"");
}

Result<void> verify_equal_numbers(ProcessGroup& group, std::span<const NamedNumber> numbers) {
    std::vector<double> mine;
    for (const auto& number : numbers) mine.push_back(number.value);
    const auto found = find_difference(group, mine);
    if (!found) return found.error();
    if (!*found) return {};
    return (*found)->error(numbers[(*found)->index].name, [&](int rank) {
        char text[32];
        std::snprintf(text, sizeof text, "%.9g", (*found)->of(rank));
        return std::string(text);
    });
}

Result<void> verify_same_shapes(ProcessGroup& group, std::span<const NamedBuffer> buffers) {
    // The numbers first: the comparison of shapes needs vectors of one length on all ranks.
    auto found = find_difference(group, {static_cast<double>(buffers.size())});
    if (!found) return found.error();
    if (*found)
        return (*found)->error("the number of parameters",
                               [&](int rank) { return whole((*found)->of(rank)); });
    std::vector<double> mine;
    for (const auto& named : buffers) {
        const std::string text = named.name + "/" + std::to_string(named.buffer.count) + "/" +
                                 std::string(to_string(named.buffer.type));
        // The shape as text, and the text as a checksum: one number, however long the name is.
        mine.push_back(number_of(hash_of(std::as_bytes(std::span(text)))));
    }
    found = find_difference(group, mine);
    if (!found) return found.error();
    if (!*found) return {};
    // All ranks have found the same one, so all ask for this.
    const NamedBuffer& named = buffers[(*found)->index];
    const auto counts = values_of_ranks(group, static_cast<double>(named.buffer.count));
    if (!counts) return counts.error();
    const auto types = values_of_ranks(group, static_cast<double>(named.buffer.type));
    if (!types) return types.error();
    return (*found)->error("the name, size or type of \"" + named.name + "\"", [&](int rank) {
        const auto i = static_cast<std::size_t>(rank);
        const auto type = static_cast<DataType>(static_cast<int>((*types)[i]));
        return whole((*counts)[i]) + " of " + std::string(to_string(type));
    });
}

namespace {

template <class T>
bool finite_as(const Buffer& buffer) {
    const T* values = static_cast<const T*>(buffer.data);
    for (std::size_t i = 0; i < buffer.count; ++i)
        if (!std::isfinite(static_cast<double>(values[i]))) return false;
    return true;
}

// Integers are always finite.
bool is_finite(const Buffer& buffer) {
    switch (buffer.type) {
        case DataType::float32:
            return finite_as<float>(buffer);
        case DataType::float64:
            return finite_as<double>(buffer);
        case DataType::float16:
            return finite_as<Half>(buffer);
        case DataType::bfloat16:
            return finite_as<BFloat16>(buffer);
        default:
            return true;
    }
}

}  // namespace

Result<void> verify_finite(ProcessGroup& group, std::span<const NamedBuffer> gradients) {
    std::optional<std::size_t> first;
    for (std::size_t i = 0; i < gradients.size() && !first; ++i) {
        // Values on a GPU are copied to the host and searched there.
        Buffer buffer = gradients[i].buffer;
        std::vector<std::byte> copy;
        if (group.memory() == Memory::gpu) {
            copy.resize(buffer.bytes());
            if (auto done = gpu_copy(copy.data(), buffer.data, copy.size()); !done) return done;
            buffer.data = copy.data();
        }
        if (!is_finite(buffer)) first = i;
    }
    return verify_none_found(group, gradients, first);
}

Result<void> verify_none_found(ProcessGroup& group, std::span<const NamedBuffer> gradients,
                               std::optional<std::size_t> mine) {
    // One number for buffer and rank together: the minimum over the ranks is the first buffer, and
    // the lowest rank for it. `none` is greater than all of them.
    const double ranks = group.size(), none = static_cast<double>(gradients.size()) * ranks;
    double found[] = {mine ? static_cast<double>(*mine) * ranks + group.rank() : none};
    if (auto done = group.all_reduce_values(found, ReduceOp::min); !done) return done;
    if (found[0] == none) return {};
    const auto at = static_cast<std::size_t>(found[0]),
               size = static_cast<std::size_t>(group.size());
    const std::string& name = gradients[at / size].name;
    const auto rank = static_cast<int>(at % size);
    if (rank == group.rank()) Progress::from_environment().report_not_finite(name);
    return Error(ErrorCode::malformed, "the gradient of \"" + name +
                                           "\" is not a finite number on rank " +
                                           std::to_string(rank) +
                                           "; is the learning rate too high, or a sample damaged?");
}

}  // namespace ddprun::trainer
