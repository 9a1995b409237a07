// GradientReducer: averages gradients over ranks while backward still computes (as PyTorch's
// DistributedDataParallel does).
//
// The reducer owns the memory of the gradients, in buckets. Backward adds the gradient of parameter
// i into gradient(i) and then calls ready(i). As soon as all gradients of a bucket are ready, the
// bucket is reduced on the group's own thread and stream. finish() waits for the rest. After it
// gradient(i) holds the mean over ranks of what each rank has added since zero(). Each rank has the
// same weight, also if batches are unequal.
//
//   reducer.zero();                                    // once a step
//   { auto quiet = reducer.no_sync(); backward(); }    // accumulation: any number of times
//   backward();                                        // calls ready(i) for each i
//   reducer.finish();  reducer.clip(1.0);  optimizer();
//
// At the start the parameters are broadcast from rank 0 and verified to be equal. Between finish()
// and the next ready() the program may use the group for other calls. Thread: one. Errors: those of
// the group; usage, for a gradient that is ready twice, or never (unless find_unused is set);
// malformed, for a gradient that is not finite (if find_not_finite is set).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trainer/gradients/communication_hook.h"
#include "trainer/gradients/gradient_buckets.h"
#include "trainer/gradients/reduce_times.h"
#include "trainer/group/process_group.h"
#include "trainer/training/agreement.h"

namespace ddprun::trainer {

struct ReducerOptions {
    // Sizes of the first bucket and of the others, see plan_buckets(). The defaults are PyTorch's.
    std::size_t first_bucket_bytes = std::size_t{1} << 20;
    std::size_t bucket_bytes = std::size_t{25} << 20;
    // Accepts that backward does not reach some parameters on some ranks; their gradients count as
    // zero there. Costs one small all-reduce a step.
    bool find_unused = false;
    // How the buckets travel. Null: AllReduceHook.
    std::shared_ptr<CommunicationHook> hook = {};
    // false: the program has made the parameters equal on all ranks itself.
    bool broadcast_at_start = true;
    // finish() fails if a gradient holds an infinity or a NaN, and names the parameter and the
    // rank. Each gradient is read once before the reduction and once after it. Nothing more is sent
    // unless one is found.
    bool find_not_finite = false;
};

class GradientReducer {
  public:
    // The parameters lie in the group's kind of memory and have a floating type. `group` and the
    // memory of the parameters must outlive the reducer. `buffers` (for example running statistics)
    // are broadcast and verified, but not reduced. All ranks call it with the same names, sizes and
    // types.
    static Result<std::unique_ptr<GradientReducer>> make(ProcessGroup& group,
                                                         std::vector<NamedBuffer> parameters,
                                                         const ReducerOptions& options = {},
                                                         std::vector<NamedBuffer> buffers = {});
    ~GradientReducer();
    GradientReducer(const GradientReducer&) = delete;
    GradientReducer& operator=(const GradientReducer&) = delete;

    // The memory of one parameter's gradient. It stays in place as long as the reducer lives.
    Buffer gradient(std::size_t parameter) const;

    // All gradients with the names of their parameters, for verify_finite() and for optimizers.
    std::vector<NamedBuffer> gradients() const;

    // Sets all gradients to zero. Call it before the first backward pass of a step.
    Result<void> zero();
    // Backward has added everything to this gradient. Backward must not change it again until
    // finish() returns.
    Result<void> ready(std::size_t parameter);
    // Waits until all gradients are averaged.
    Result<void> finish();

    // While this object lives, ready() does nothing. finish() must not be called. It needs a name:
    // an unnamed one ends at once.
    class [[nodiscard]] NoSync {
      public:
        explicit NoSync(GradientReducer& reducer) : reducer_(reducer) { reducer_.quiet_ = true; }
        ~NoSync() { reducer_.quiet_ = false; }
        NoSync(const NoSync&) = delete;
        NoSync& operator=(const NoSync&) = delete;

      private:
        GradientReducer& reducer_;
    };
    [[nodiscard]] NoSync no_sync() { return NoSync(*this); }

    // Whether any rank had a gradient for this parameter in the last step. Always true if
    // find_unused is off.
    bool used(std::size_t parameter) const { return used_[parameter]; }

    // Scales all gradients so that their common norm is at most `most`. Returns the norm before
    // that. Call it after finish(), when the gradients are equal on all ranks. On a GPU only
    // float32 gradients can be clipped, or searched with find_not_finite.
    Result<double> clip(double most);

    // How long the communication of the last step took, and how much of it was hidden.
    const ReduceTimes& times() const { return times_; }
    const BucketPlan& plan() const { return plan_; }

  private:
    GradientReducer(ProcessGroup& group, std::vector<NamedBuffer> parameters,
                    const ReducerOptions& options);
    Result<void> allocate();
    Result<void> launch(std::size_t bucket);
    Result<void> mark_unused();
    Result<void> note_not_finite(std::size_t parameter);
    Result<void> verify_reduced();
    Result<void> synchronize(const std::vector<NamedBuffer>& buffers);
    Buffer bucket(std::size_t index) const;

    ProcessGroup& group_;
    const std::vector<NamedBuffer> parameters_;
    const ReducerOptions options_;
    BucketPlan plan_;
    BucketProgress progress_;
    std::shared_ptr<CommunicationHook> hook_;
    std::vector<GroupMemory> memory_;  // one for each bucket
    std::vector<Work> works_;
    std::vector<BucketTime> bucket_times_;  // one for each of works_
    std::vector<bool> used_;
    std::vector<bool> not_finite_;  // gradients on this rank, in this step
    ReduceTimes times_;
    bool quiet_ = false;
};

}  // namespace ddprun::trainer
