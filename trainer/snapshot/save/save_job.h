// SaveJob: what one snapshot is made of, as one rank sees it: which files it has, which of them
// this rank writes, and which tensors lie in them.
//
// Tensors that all ranks have are dealt out over files of a fixed plan, and the files over the
// ranks. The slices that a rank writes are one file more, its own. Pure.
#pragma once

#include <chrono>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "trainer/snapshot/folder/write_plan.h"
#include "trainer/snapshot/format/snapshot_index.h"
#include "trainer/snapshot/format/snapshot_manifest.h"
#include "trainer/worker/context.h"

namespace ddprun::trainer {

class SaveJob {
  public:
    // A file, the rank that writes it, and the key of its report, see save_meeting.h.
    struct File {
        std::string name, key;
        int rank = 0;
        bool slices = false;
    };

    SaveJob(const Context& context, const std::vector<TensorView>& tensors,
            std::uint64_t file_bytes);

    // Files of the plan, the same on all ranks that have the same tensors.
    std::size_t planned() const { return planned_; }
    // This rank's files, and the tensors in each. If the rank brings slices, the last of
    // own_tensors() are all of them, and the last file is theirs if it writes any. `how` must be
    // set for the names.
    std::vector<File> own_files() const;
    std::vector<std::vector<TensorView>> own_tensors(const std::vector<TensorView>& tensors) const;

    // On rank 0: all files and their index. `slices`: those that each rank writes, see
    // SliceAgreement.
    std::vector<File> all_files(const std::vector<std::vector<SliceEntry>>& slices) const;
    SnapshotIndex index_of(const std::vector<std::vector<SliceEntry>>& slices) const;
    // The names of the tensors that all ranks have.
    std::set<std::string> shared_names() const;

    SnapshotName name;
    std::string tensors;   // tensor_list() of those that all ranks have
    std::string slices;    // write_slices() of those that this rank brings
    std::string contents;  // contents_of(); empty: not compared
    std::string written;   // of those among them that it writes; set before own_files()
    Metadata metadata, own_metadata;
    std::string key;  // prefix of its keys in the store; the same on all ranks
    std::chrono::steady_clock::time_point begun;
    WritePlan how;

  private:
    File file(std::size_t index) const;
    File slices_file(int rank) const;

    int rank_, world_;
    std::vector<std::vector<std::size_t>> plan_;  // for each file: its tensors, as indices
    std::vector<std::size_t> slices_;             // this rank's, as indices
    std::size_t planned_ = 0;
    std::vector<std::pair<std::string, std::uint64_t>> tensors_;  // names and bytes
};

}  // namespace ddprun::trainer
