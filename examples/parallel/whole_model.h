// WholeModel: a replica's pieces put together for a snapshot, and taken apart after it was loaded.
// So a snapshot does not know how the model was cut, and any number of ranks resumes from it.
//
// Every rank of the row holds the whole model for that time. Thread: one. Errors: those of the
// group and of load_into().
#pragma once

#include <vector>

#include "examples/parallel/block_stack.h"
#include "trainer/group/process_group.h"
#include "trainer/snapshot/load_into.h"

namespace example {

class WholeModel {
  public:
    // `row` and the memory of the pieces must outlive this object.
    WholeModel(ddprun::trainer::ProcessGroup& row, std::vector<Piece> pieces);

    // All tensors, for SnapshotWriter::prepare() and save(). Their memory belongs to this object.
    std::vector<ddprun::trainer::TensorView> tensors();

    // Brings the pieces of all ranks of the row into tensors(). All of them call it.
    ddprun::Result<void> gather();

    // Fills this rank's pieces from a snapshot.
    ddprun::Result<void> load(const ddprun::trainer::Snapshot& snapshot);

  private:
    std::vector<ddprun::trainer::Tensor> whole();

    ddprun::trainer::ProcessGroup& row_;
    const std::vector<Piece> pieces_;
    const std::vector<WholeTensor> tensors_;
    std::vector<float> values_;   // all tensors, one after the other
    std::vector<float*> places_;  // of each piece in values_
};

}  // namespace example
