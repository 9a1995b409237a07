// A small state of a training for tests of snapshots: its numbers follow from the step, so a mix of
// two steps shows.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "trainer/snapshot/folder/snapshot.h"

namespace ddprun::trainer::test {

// Seven tensors, whose sizes differ by one each, so mixed-up tensors show, too.
struct State {
    explicit State(std::int64_t step, std::size_t count = 3000) {
        for (std::size_t t = 0; t < 7; ++t) {
            values.emplace_back(count + t);
            for (std::size_t i = 0; i < values[t].size(); ++i)
                values[t][i] = static_cast<float>(static_cast<std::size_t>(step) * 31 + t * 7 + i);
        }
    }
    std::vector<TensorView> views() const {
        std::vector<TensorView> tensors;
        for (std::size_t t = 0; t < values.size(); ++t)
            tensors.push_back(tensor_view("t" + std::to_string(t), {values[t].size()},
                                          std::span<const float>(values[t])));
        return tensors;
    }
    // Whether the snapshot has exactly these tensors, to the bit.
    bool is_in(const Snapshot& snapshot) const {
        for (const auto& view : views()) {
            const auto* found = snapshot.content.find(view.name);
            if (!found || found->data.size() != view.data.size() ||
                !std::equal(view.data.begin(), view.data.end(), found->data.begin()))
                return false;
        }
        return snapshot.content.tensors.size() == values.size();
    }
    std::vector<std::vector<float>> values;
};

}  // namespace ddprun::trainer::test
