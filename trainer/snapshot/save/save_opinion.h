// What one rank believes about a save, and in what two ranks differ. Rank 0 compares its own belief
// with that of every other rank before a snapshot is complete: tensors of two different steps in
// one snapshot would load, and be nonsense.
//
// Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "trainer/snapshot/format/snapshot_name.h"
#include "trainer/tensors/tensor_view.h"

namespace ddprun::trainer {

// In place of a checksum.
inline constexpr char kNotCompared[] = "-";

struct SaveOpinion {
    SnapshotName name;
    int world_size = 1;
    std::size_t files = 1;  // follows from the tensors and from WriterOptions::file_bytes
    std::string tensors;    // checksum of tensor_list()
    std::string contents = kNotCompared;  // checksum of contents_of(), see save_contents.h
    bool operator==(const SaveOpinion&) const = default;
};

// One line for each tensor, in the order of their names: "w F32 [3, 4]". Line ends and other
// control characters in a name are replaced.
std::string tensor_list(const std::vector<TensorView>& tensors);

// One line of text, for the store.
std::string write_opinion(const SaveOpinion& opinion);
Result<SaveOpinion> parse_opinion(const std::string& text);

// Says in what rank `rank` differs from rank 0, with both values: "rank 3 saves step 9, and rank 0
// step 8: all ranks save the same steps". Empty if they agree in all but the tensors.
std::optional<std::string> disagreement(const SaveOpinion& first, int rank,
                                        const SaveOpinion& mine);

// The same for two lists of tensors. Names the first tensor that differs: "rank 3 saves \"w\" as
// F32 [3], and rank 0 as F32 [4]".
std::string tensor_disagreement(const std::string& first, int rank, const std::string& mine);

}  // namespace ddprun::trainer
