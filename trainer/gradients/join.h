// Join: trains on while some ranks have no samples left (as torch.distributed.algorithms.join).
//
// A rank that runs out of samples calls finish(). It then makes the calls that the others' steps
// make, with zeros for gradients, until no rank has samples. At the end all ranks have the state of
// a rank that trained to the last step.
//
//   Join join(group, {.divide_by_initial_world_size = false});
//   join.add(reducer, parameters and state of the optimizer);
//   while (this rank has samples) {
//       join.step();                                    // once for each finish() of the reducer
//       reducer.zero(); backward(); reducer.finish();
//       optimizer();
//   }
//   join.finish();
//
// Between two step()s the program may call nothing on the group but what was added. For any other
// call of a step (a common wish to stop, a mean of losses) add() what a rank without samples calls
// in its place.
//
// step() is a small all-reduce, for which the host waits. Thread: one. Errors: those of the group,
// which name a rank that dies; usage, for a step() that is missing, too many or after finish();
// refused, where ranks must not end early.
#pragma once

#include <functional>
#include <vector>

#include "trainer/gradients/gradient_reducer.h"

namespace ddprun::trainer {

// Names and defaults are torch's.
struct JoinOptions {
    // true: gradients are sums divided by the number of all ranks, so they shrink when ranks run
    // out of samples. false: divided by the number of ranks that have samples.
    bool divide_by_initial_world_size = true;
    // step() and finish() fail on all ranks as soon as one has no samples left and another has. The
    // error names those without. The group stays usable.
    bool throw_on_early_termination = false;
};

// What else a step calls on the group, in the place of a rank without samples.
struct Joinable {
    // Once for each step of the others, in the order of add().
    std::function<Result<void>()> shadow;
    // On all ranks after the last step: what belongs to the state and is not a buffer. `last` has
    // the newest. Empty: nothing.
    std::function<Result<void>(int last)> share = {};
};

struct JoinEnd {
    int last = 0;             // a rank that trained in the last step; all have its state
    std::uint64_t steps = 0;  // that any rank trained in
};

class Join {
  public:
    // What is added and the group must outlive it. All ranks make and fill it alike.
    explicit Join(ProcessGroup& group, const JoinOptions& options = {})
        : group_(group), options_(options) {}

    // The gradients of a model. `state`: all that its steps change, e.g. parameters and momenta, in
    // the group's kind of memory. `stream`: on a GPU, on which the program works.
    void add(GradientReducer& reducer, std::vector<NamedBuffer> state, GpuStream stream = nullptr);
    void add(Joinable part);

    // This rank has samples for one more step. Returns how many ranks have.
    Result<int> step();

    // This rank has none. Returns when no rank has, with equal state on all ranks.
    Result<JoinEnd> finish();

  private:
    // A model.
    struct Model {
        GradientReducer* reducer;
        std::vector<NamedBuffer> state;
        GpuStream stream;
        std::uint64_t before;  // steps of the reducer that are not steps of the Join
    };
    Result<void> verify_use() const;
    Result<int> count(bool with_samples);
    Result<void> early_end(bool with_samples);
    Result<JoinEnd> share(bool last);

    ProcessGroup& group_;
    const JoinOptions options_;
    std::vector<Model> models_;
    std::vector<Joinable> parts_;
    std::uint64_t steps_ = 0;  // in which any rank had samples
    bool finished_ = false;
};

}  // namespace ddprun::trainer
