// ShardedOptimizer: an optimizer whose state is shared out over the ranks (ZeRO, stage 1).
//
// Each bucket of gradients is cut into one part for each rank. While backward computes, the buckets
// are reduced so that each rank gets the mean of its part alone (reduce-scatter). step() updates
// the values of this rank's parts, for which alone it keeps the optimizer's state, and sends them
// to the others (all-gather), while the program goes on. So a rank has 1/N of the state: of AdamW 8
// bytes a parameter become 8 / N.
//
//   auto optimizer = or_throw(ShardedOptimizer::make(group, parameters, OptimizerRule::adamw()));
//   auto& reducer = optimizer->reducer();
//   reducer.zero();            // waits for the last step's parameters
//   forward();  backward();    // calls reducer.ready(i) for each i
//   reducer.finish();  reducer.clip(1.0);  optimizer->step(rate);
//   optimizer->wait();         // before whatever reads the parameters: a snapshot, a validation
//   writer->save(step, views_of(parameters and optimizer->state()), …);
//
// Snapshots have the state as slices, so another number of ranks goes on with it, also one without
// sharding (and the other way round) if it gives its state the same names and flat shapes.
//
// Numbers. On Gloo they are those of an unsharded training with ReducerOptions::shards as the
// number of ranks, to the bit, but for clip(): its norm is added up in another order, so it differs
// by some units in the last place of a double. With one or two ranks `shards` makes no difference.
//
// All ranks must have the same rule, which make() compares, and make the same steps: step()'s rate
// and number, and what clip() was given, are compared after each of the first three steps and then
// after every 16th, with all steps between (step_numbers.h). wait() and the reducer's zero() return
// the error, `refused`, on all ranks; some steps have been made by then.
//
// With a Join: add() the reducer with the parameters alone (each rank keeps its own state), and a
// Joinable whose shadow calls step() with the others' rate. finish() waits for the last step.
//
// Parameters are float32 in host memory. On GPUs make() refuses: its updates run on the host. The
// parameters and the group must outlive it. Thread: one. Errors: those of the group; refused.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.h"
#include "trainer/gradients/gradient_reducer.h"
#include "trainer/group/late_memory.h"
#include "trainer/group/process_group.h"
#include "trainer/optimizer/optimizer_rule.h"
#include "trainer/optimizer/shard_pieces.h"
#include "trainer/optimizer/step_numbers.h"
#include "trainer/tensors/tensor.h"

namespace ddprun::trainer {

class ShardedOptimizer {
  public:
    // All ranks call it, as GradientReducer::make(), with the same rule (else: refused).
    // `options.hook` must be empty: the buckets travel by the optimizer's own hook.
    static Result<std::unique_ptr<ShardedOptimizer>> make(ProcessGroup& group,
                                                          std::vector<NamedBuffer> parameters,
                                                          const OptimizerRule& rule,
                                                          ReducerOptions options = {},
                                                          std::vector<NamedBuffer> buffers = {});
    ~ShardedOptimizer();

    // Averages the gradients, see the example. After step() its memory has no gradients any more:
    // the parameters travel in it, until zero().
    GradientReducer& reducer() { return *reducer_; }

    // One step, once after the reducer's finish() (else: usage). Returns when this rank's parts are
    // new and on their way; until wait() or the reducer's zero() the other parts of the parameters
    // are old (a save is refused), and no call of the program may be on the group but what all
    // ranks make in the same order.
    Result<void> step(float rate);
    // All parameters are those after the last step.
    Result<void> wait();

    // This rank's state, for snapshots: one slice of each parameter's, flat, with the names of
    // state_names(); an empty one where this rank has nothing of the parameter. Of Adam also the
    // number of steps, "optimizer.step", which all ranks have. The memory stays in place. For
    // load_into() and resume_into() too, before the first step.
    std::vector<Tensor> state();
    // Bytes of this rank's state, and of the state of all parameters.
    std::uint64_t state_bytes() const;
    std::uint64_t whole_state_bytes() const;

  private:
    class Hook;
    ShardedOptimizer(ProcessGroup& group, std::vector<NamedBuffer> parameters,
                     const OptimizerRule& rule);
    void make_state();
    void update_piece(const ShardPiece& piece, std::size_t state, float rate);
    void copy_others(std::size_t bucket);
    void begin_comparison();
    Result<void> compare_steps();

    ProcessGroup& group_;
    const std::vector<NamedBuffer> parameters_;
    const OptimizerRule rule_;
    std::shared_ptr<Hook> hook_;
    std::unique_ptr<GradientReducer> reducer_;
    std::vector<ShardPiece> pieces_;
    std::vector<std::vector<float>> state_;  // for each of state_names(): of all pieces in a row
    std::int64_t steps_ = 0;
    bool averaged_ = false;  // the memory of the gradients has those of this step
    StepNumbers numbers_;
    StepNumbers::Words own_numbers_{};  // of this rank, and of all, while they are compared
    std::vector<double> all_numbers_;
    std::optional<Work> comparison_;
    LateMemory late_;            // the parameters, between step() and wait()
    std::vector<Work> gathers_;  // of the buckets, in their order; empty: the parameters are whole
};

}  // namespace ddprun::trainer
