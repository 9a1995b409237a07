// The slices that the ranks bring to a snapshot, and whether they make up whole tensors: a snapshot
// with a hole would be found out only by those who need it.
//
// Pure. Errors: refused, for slices that do not fit together; the sentence names tensor and ranks.
// malformed, for a text that no rank has written.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "trainer/tensors/slice.h"
#include "trainer/tensors/tensor_view.h"

namespace ddprun::trainer {

// One slice without its data.
struct SliceEntry {
    std::string tensor;
    DataType type = DataType::float32;
    Extents whole;
    Rectangle part;

    std::string file_key() const { return slice_name(tensor, part, whole); }
    bool operator==(const SliceEntry&) const = default;
};

// The slices among these tensors as JSON: [["w", "F32", [8, 4], [0, 0], [4, 4]], …], sorted. Empty
// if there are none.
std::string write_slices(const std::vector<TensorView>& tensors);
std::string write_slices(const std::vector<SliceEntry>& slices);
Result<std::vector<SliceEntry>> parse_slices(const std::string& text);

// Whether the slices of all ranks, in the order of the ranks, are whole tensors: equal types and
// shapes, no element missing, and none twice but in replicas (several ranks bring one rectangle).
// `shared`: the names of the tensors that all ranks have.
Result<void> check_slices(const std::vector<std::vector<SliceEntry>>& ranks,
                          const std::set<std::string>& shared);

}  // namespace ddprun::trainer
