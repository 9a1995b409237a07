// ModuleReducer: averages the gradients of a torch::nn::Module over ranks while backward still
// computes. DataParallelModule (data_parallel_module.h) is the wrapper that programs use.
//
// At the start, parameters and buffers are broadcast from rank 0. backward() calls a hook for each
// parameter whose gradient is complete; the gradient moves into a bucket of the GradientReducer,
// and Tensor::grad() becomes a view of that memory. When backward() returns, all gradients are
// means over the ranks. Gradients accumulate as usual: Optimizer::zero_grad() makes them new, with
// and without set_to_none.
//
// Errors inside forward() and backward() are exceptions of the type ModuleError, because libtorch's
// calls have no other way: usage (the module was changed, a parameter got no gradient, a sparse
// gradient), and those of the group. After one of the group, the program should end. In a world of
// one nothing is sent, and everything else is the same.
//
// backward() must reach at least one parameter on each rank. Threads: one calls forward() and
// backward(). The module lies on one device: the CPU for a group on host memory, this rank's GPU
// for one on GPU memory.
#pragma once

#include <memory>
#include <stdexcept>

#include "trainer/gradients/gradient_reducer.h"

namespace torch::nn {
class Module;
}

namespace ddprun::trainer {

// An error that comes out of libtorch's calls.
struct ModuleError : std::runtime_error {
    explicit ModuleError(Error e) : std::runtime_error(e.sentence()), error(std::move(e)) {}
    Error error;
};

struct DataParallelOptions {
    // Buckets, unused parameters, hook, search for values that are not finite: see
    // gradient_reducer.h. Without a hook of the program's own, gradients are divided by the number
    // of ranks before they are added, as PyTorch does: the sums have the same bits.
    ReducerOptions reducer = {};
    // Broadcasts the module's buffers (for example running means) from rank 0 before each forward()
    // in training mode, as PyTorch does.
    bool broadcast_buffers = true;
};

class ModuleReducer {
  public:
    // `group` and `module` must outlive it. All ranks call it with the same module. A parameter
    // that does not require a gradient is broadcast once, and not reduced. Errors: usage (no
    // parameters, a parameter on another device), refused (names, shapes or types differ between
    // the ranks, or which parameters are trained), those of the group.
    static Result<std::unique_ptr<ModuleReducer>> make(ProcessGroup& group,
                                                       torch::nn::Module& module,
                                                       const DataParallelOptions& options = {});
    // Takes its hooks away. Gradients keep their memory as long as somebody has them.
    ~ModuleReducer();
    ModuleReducer(const ModuleReducer&) = delete;
    ModuleReducer& operator=(const ModuleReducer&) = delete;

    // Call it before each forward pass: checks that the module is the one that was wrapped, and
    // broadcasts its buffers. Throws ModuleError.
    void before_forward();

    // Gives all ranks the buffers of rank 0 now. In training each rank's forward() changes its own,
    // so call it before a snapshot and before a validation. All ranks call it. Throws ModuleError.
    void broadcast_buffers();

    // While this object lives, gradients only accumulate on this rank, and buffers are not
    // broadcast. The first backward pass after it reduces the sum.
    class [[nodiscard]] NoSync {
      public:
        explicit NoSync(ModuleReducer& reducer);
        ~NoSync();
        NoSync(const NoSync&) = delete;
        NoSync& operator=(const NoSync&) = delete;

      private:
        ModuleReducer& reducer_;
    };
    NoSync no_sync() { return NoSync(*this); }

    // The reducer behind it: clip(), times(), used().
    GradientReducer& gradients();

  private:
    struct State;  // libtorch's side; the hooks refer to it
    explicit ModuleReducer(std::shared_ptr<State> state);
    std::shared_ptr<State> state_;
};

}  // namespace ddprun::trainer
