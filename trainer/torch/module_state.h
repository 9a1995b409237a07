// The state of a torch::nn::Module and of its optimizer as tensors with names, for snapshots.
//
// Names are those of Python: a parameter or buffer has its name in state_dict() ("conv1.weight",
// "bn.num_batches_tracked"); what the optimizer keeps for a parameter is
// "optimizer.state.conv1.weight.momentum_buffer", the name in PyTorch's flattened optimizer states.
// So Python's load_state_dict() takes what is written here, and restore() takes what Python's
// safetensors.torch.save_file() writes. Optimizers: SGD, Adam, AdamW. Their settings, such as the
// learning rate, and the state of random generators are not part of it.
//
// Threads: that of the training. Errors: usage; the sentence names the tensor, and both shapes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trainer/snapshot/format/safetensors.h"

namespace torch::nn {
class Module;
}
namespace torch::optim {
class Optimizer;
}

namespace ddprun::trainer {

// Views for SnapshotWriter::save(), into the memory of the module and the optimizer. What has no
// such memory (a tensor with gaps, Adam's count of steps) is copied into `kept`. Tensors on a GPU
// need WriterOptions::gpu. Then the ModuleState must live until the writer's wait(), or until the
// save() after the next one.
struct ModuleState {
    std::vector<TensorView> tensors;
    std::shared_ptr<void> kept;
};

// `optimizer` may be null. Before its first step an optimizer has no state.
Result<ModuleState> state_of(const torch::nn::Module& module,
                             const torch::optim::Optimizer* optimizer = nullptr);

// The module's alone, in host memory also if the module is on a GPU: for files and checksums.
Result<ModuleState> host_state_of(const torch::nn::Module& module);

// Copies the tensors of a snapshot or a file into the module and the optimizer. All of the module's
// must be there, with the same shapes and types; others than these and the optimizer's must not.
// An optimizer without state in `content` starts anew. Nothing is changed if one does not fit.
Result<void> restore(const Safetensors& content, torch::nn::Module& module,
                     torch::optim::Optimizer* optimizer = nullptr);

}  // namespace ddprun::trainer
