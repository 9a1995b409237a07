// Averages gradients over ranks while backward still computes.
//
// The gradients lie in buckets that the reducer owns: backward adds parameter i's gradient into
// gradient(i) and then says ready(i); a bucket whose gradients are all there is reduced at once, on
// the group's own thread and stream. finish() waits for the rest. Afterwards gradient(i) holds the
// mean over ranks, of each rank's sum over the micro-steps since zero(): ranks weigh equally, also
// with unequal batches.
//
//   reducer.zero();                                    // once a step
//   { auto quiet = reducer.no_sync(); backward(); }    // accumulation: any number of times
//   backward();                                        // says ready(i) for each i
//   reducer.finish();  reducer.clip(1.0);  optimizer();
//
// At the start the parameters are broadcast from rank 0 and verified equal. The group may be used
// for other things between finish() and the next ready(). Thread: one. Errors: those of the group;
// usage, for gradients that were ready twice or (without find_unused) never; malformed, for those
// that are no numbers.
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
    std::size_t first_bucket_bytes = std::size_t{1} << 20;
    std::size_t bucket_bytes = std::size_t{25} << 20;
    // Gradients that backward does not come to on this rank count as zero; costs one small
    // collective a step.
    bool find_unused = false;
    // How they travel; null: AllReduceHook.
    std::shared_ptr<CommunicationHook> hook = {};
    bool broadcast_at_start = true;
    // finish() fails, with the parameter's and the rank's name, when a gradient holds an infinity
    // or a NaN: each is read once before it is reduced and once after; nothing more is sent while
    // all is well.
    bool find_not_finite = false;
};

class GradientReducer {
  public:
    // The parameters lie in the group's kind of memory and are floating numbers; the group and they
    // outlive the reducer. `buffers` (running statistics) are broadcast and verified, not reduced.
    static Result<std::unique_ptr<GradientReducer>> make(ProcessGroup& group,
                                                         std::vector<NamedBuffer> parameters,
                                                         const ReducerOptions& options = {},
                                                         std::vector<NamedBuffer> buffers = {});
    ~GradientReducer();
    GradientReducer(const GradientReducer&) = delete;
    GradientReducer& operator=(const GradientReducer&) = delete;

    Buffer gradient(std::size_t parameter) const;

    // The gradients with their parameters' names: for verify_finite and for optimizers.
    std::vector<NamedBuffer> gradients() const;

    Result<void> zero();
    Result<void> ready(std::size_t parameter);
    Result<void> finish();

    // While it lives, ready() starts nothing and finish() is not called.
    class NoSync {
      public:
        explicit NoSync(GradientReducer& reducer) : reducer_(reducer) { reducer_.quiet_ = true; }
        ~NoSync() { reducer_.quiet_ = false; }
        NoSync(const NoSync&) = delete;
        NoSync& operator=(const NoSync&) = delete;

      private:
        GradientReducer& reducer_;
    };
    NoSync no_sync() { return NoSync(*this); }

    // Whether any rank had a gradient for it in the last step; always with find_unused off.
    bool used(std::size_t parameter) const { return used_[parameter]; }

    // Scales all gradients so that their norm is at most `most`; gives the norm before.
    Result<double> clip(double most);

    // Of the last step.
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
    std::vector<BucketTime> bucket_times_;  // as far as the works
    std::vector<bool> used_;
    std::vector<bool> not_finite_;  // on this rank, in this step
    ReduceTimes times_;
    bool quiet_ = false;
};

}  // namespace ddprun::trainer
