// The index of a snapshot with slices: which file has which tensor, in the form that Python's tools
// know from large models ("model.safetensors.index.json"):
//
//   {"metadata": {"total_size": 96, "slices": {"w[0:4, 0:2]": {"tensor": "w", "whole": [8, 2],
//    "offset": [0, 0]}, …}}, "weight_map": {"b": "…-00001-of-00001.safetensors",
//    "w[0:4, 0:2]": "…-slices-00001-of-00002.safetensors", …}}
//
// It is for Python and people: loading goes by the manifest and the files themselves. Pure.
#pragma once

#include <string>
#include <vector>

#include "trainer/snapshot/format/safetensors.h"
#include "trainer/tensors/slice_list.h"

namespace ddprun::trainer {

class SnapshotIndex {
  public:
    // A tensor that all ranks have.
    void add(const std::string& tensor, std::uint64_t bytes, const std::string& file);
    void add(const SliceEntry& slice, const std::string& file);
    std::string text() const;

  private:
    struct Entry {
        std::string key, file;
        std::optional<SliceEntry> slice;
    };
    std::uint64_t bytes_ = 0;
    std::vector<Entry> entries_;
};

}  // namespace ddprun::trainer
