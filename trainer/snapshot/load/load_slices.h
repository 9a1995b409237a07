// Loads a snapshot into tensors of the program's own, of which it reads no more than they need:
// each rank its slices, whatever slices and however many ranks have written it.
//
//   std::vector<Tensor> mine{
//       slice_of("w", {1024, 512}, {256 * rank, 0}, {256, 512}, std::span(w))};
//   auto loaded = or_throw(resume_into(context, *store, folder, mine, timeout));
//   if (loaded) step = loaded->manifest.name.step;
//
// Files of slices are read by blocks of a MiB, each compared with its checksum; of the other files
// those that have a tensor of the list are read as a whole. So is all of a snapshot that an older
// version wrote. Thread: one.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "trainer/snapshot/folder/snapshot.h"
#include "trainer/tensors/tensor.h"

namespace ddprun::trainer {

struct LoadedSlices {
    Manifest manifest;
    std::uint64_t bytes_read = 0;  // from the files, headers too
    bool from_base = false;        // of the base folder, see SnapshotFolder::open()
};

// Fills the tensors from one snapshot of a folder. After an error they may be filled in part. With
// Rest::refused the program must name each tensor of the snapshot, slices or not. Errors: those of
// load_into(); not_found, unavailable; malformed, for damaged files.
Result<LoadedSlices> load_slices(const std::string& folder, const SnapshotName& name,
                                 const std::vector<Tensor>& tensors,
                                 const LoadOptions& options = {});

// All ranks call this before training, once for each folder, in the same order, each with its own
// tensors. All ranks load the newest snapshot that every rank could load; one that is damaged for
// some rank is skipped with a warning on rank 0. Empty: there is no snapshot, and the tensors are
// as they were. Takes the folder over, as resume() does (snapshot.h). `timeout`: how long a rank
// waits for the others. Errors: those of resume(); usage, if the tensors of some rank do not fit
// the snapshot; the sentence names the rank.
Result<std::optional<LoadedSlices>> resume_into(const Context& context, Store& store,
                                                SnapshotFolder& folder,
                                                const std::vector<Tensor>& tensors,
                                                std::chrono::milliseconds timeout,
                                                const LoadOptions& options = {});

}  // namespace ddprun::trainer
