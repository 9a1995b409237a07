// A part of a matrix on one rank, whose numbers follow from the step and from their places in the
// whole; and how tests save it.
#pragma once

#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tests/trainer/ranks.h"
#include "trainer/snapshot/load/load_into.h"
#include "trainer/snapshot/save/snapshot_writer.h"

namespace ddprun::trainer::test {

// The value of element `at` of a tensor, in C order, at a step.
inline float value_at(std::int64_t step, std::uint64_t at) {
    return static_cast<float>(step * 100'000 + static_cast<std::int64_t>(at));
}

// A rank's part of a matrix, with its memory.
struct Part {
    Part(std::string name, Extents whole, Extents offset, Extents shape)
        : values(*elements_of(shape)),
          tensor(slice_of(std::move(name), std::move(whole), std::move(offset), std::move(shape),
                          std::span(values))) {}
    Part(const Part&) = delete;

    // Calls f(value, its place in the whole).
    template <class F>
    void each(F&& f) {
        const Extents &whole = tensor.place->whole, &offset = tensor.place->offset;
        for (std::uint64_t i = 0; i < values.size(); ++i) {
            const std::uint64_t row = i / tensor.shape[1], column = i % tensor.shape[1];
            f(values[i], (row + offset[0]) * whole[1] + column + offset[1]);
        }
    }
    void fill(std::int64_t step) {
        each([&](float& value, std::uint64_t at) { value = value_at(step, at); });
    }
    bool has(std::int64_t step) {
        bool all = true;
        each([&](float& value, std::uint64_t at) { all = all && value == value_at(step, at); });
        return all;
    }

    std::vector<float> values;
    Tensor tensor;
};

inline SnapshotFolder open(const Context& context, const std::string& folder, Warn warn = {}) {
    return std::move(*SnapshotFolder::open(context, folder, 2, std::move(warn)));
}

inline std::unique_ptr<SnapshotWriter> writer(const Context& context, Store& store,
                                              const std::string& folder) {
    WriterOptions options;
    options.timeout = std::chrono::seconds(10);
    return SnapshotWriter::make(context, store, open(context, folder), options).value();
}

// As an exit code: 0 for an error of this text.
inline int expect_error(const Result<void>& done, const std::string& text) {
    if (!done && done.error().sentence().find(text) != std::string::npos) return 0;
    std::fprintf(stderr, "%s\n", done ? "no error" : done.error().sentence().c_str());
    return 90;
}

}  // namespace ddprun::trainer::test
