// The index of a snapshot's files, as Python's tools read it.
#include "trainer/snapshot/format/snapshot_index.h"

#include <gtest/gtest.h>

namespace ddprun::trainer {
namespace {

TEST(SnapshotIndex, HasTheFormThatPythonKnows) {
    SnapshotIndex index;
    index.add("c", 40, "a.safetensors");
    index.add(SliceEntry{"w", DataType::float32, {8, 2}, {{0, 0}, {4, 2}}}, "b.safetensors");
    index.add(SliceEntry{"d", DataType::float32, {3}, {{0}, {3}}}, "b.safetensors");
    EXPECT_EQ(index.text(), R"({
 "metadata": {
  "slices": {
   "w[0:4, 0:2]": {
    "offset": [
     0,
     0
    ],
    "tensor": "w",
    "whole": [
     8,
     2
    ]
   }
  },
  "total_size": 84
 },
 "weight_map": {
  "c": "a.safetensors",
  "d": "b.safetensors",
  "w[0:4, 0:2]": "b.safetensors"
 }
}
)");
}

}  // namespace
}  // namespace ddprun::trainer
