// DataParallelModule: a torch::nn::Module whose gradients are averaged over all ranks, as in
// PyTorch's DistributedDataParallel.
//
//   auto net = std::make_shared<Net>();                        // any torch::nn::Module
//   auto model = DataParallelModule<Net>::make(*group, net).value();
//   torch::optim::SGD optimizer(net->parameters(), 0.1);
//   …
//   optimizer.zero_grad();
//   { auto quiet = model.no_sync(); loss_of(model.forward(x0)).backward(); }  // accumulation
//   loss_of(model.forward(x1)).backward();                     // averages over the ranks
//   optimizer.step();
//
// module_reducer.h says what it does, and which errors are thrown. Snapshots and optimizers use the
// module itself, so names have no prefix. Every rank must call forward() of this wrapper in
// training; for validation on some ranks alone call the module's own.
#pragma once

#include <utility>

#include "trainer/torch/module_reducer.h"

namespace ddprun::trainer {

template <class Module>
class DataParallelModule {
  public:
    // `group` must outlive it. Errors: those of ModuleReducer::make().
    static Result<DataParallelModule> make(ProcessGroup& group, std::shared_ptr<Module> module,
                                           const DataParallelOptions& options = {}) {
        auto reducer = ModuleReducer::make(group, *module, options);
        if (!reducer) return reducer.error();
        return DataParallelModule(std::move(module), std::move(*reducer));
    }

    // The module's own forward(). Throws ModuleError.
    template <class... Arguments>
    decltype(auto) forward(Arguments&&... arguments) {
        reducer_->before_forward();
        return module_->forward(std::forward<Arguments>(arguments)...);
    }

    // Gives all ranks the buffers of rank 0: before a snapshot, and before a validation.
    void broadcast_buffers() { reducer_->broadcast_buffers(); }

    ModuleReducer::NoSync no_sync() { return reducer_->no_sync(); }

    // Scales the averaged gradients so that their common norm is at most `most`; returns the norm
    // before that. It is the same on all ranks.
    Result<double> clip(double most) { return reducer_->gradients().clip(most); }

    // How long the communication of the last backward() took, and how much of it was hidden.
    ReduceTimes times() const { return reducer_->gradients().times(); }

    Module& module() { return *module_; }
    ModuleReducer& reducer() { return *reducer_; }

  private:
    DataParallelModule(std::shared_ptr<Module> module, std::unique_ptr<ModuleReducer> reducer)
        : module_(std::move(module)), reducer_(std::move(reducer)) {}

    // The reducer goes first: it refers to the module.
    std::shared_ptr<Module> module_;
    std::unique_ptr<ModuleReducer> reducer_;
};

}  // namespace ddprun::trainer
