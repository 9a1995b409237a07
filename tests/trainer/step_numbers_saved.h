// The snapshots of a network whose numbers all are the number of steps that it has made.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "trainer/snapshot/folder/snapshot.h"

namespace ddprun::trainer::test {

// Each of the `steps` snapshots in the folder has the numbers of its own step.
inline void expect_step_numbers(const std::string& folder, std::int64_t steps,
                                std::initializer_list<const char*> tensors) {
    auto saved = SnapshotFolder::open(Context(), folder, 9, {}).value();
    for (std::int64_t step = 1; step <= steps; ++step) {
        const auto snapshot = saved.load(SnapshotName{step, Generation(0)});
        ASSERT_TRUE(snapshot) << snapshot.error().sentence();
        for (const char* tensor : tensors) {
            const auto* found = snapshot->content.find(tensor);
            ASSERT_TRUE(found) << tensor;
            const std::span<const float> numbers(reinterpret_cast<const float*>(found->data.data()),
                                                 found->data.size() / sizeof(float));
            EXPECT_EQ(std::count(numbers.begin(), numbers.end(), static_cast<float>(step)),
                      numbers.size())
                << tensor << " of step " << step;
        }
    }
}

}  // namespace ddprun::trainer::test
