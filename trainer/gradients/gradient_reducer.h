// GradientReducer: averages gradients over ranks while backward still computes (as PyTorch's
// DistributedDataParallel does).
//
// The gradients lie in one block of memory, of the reducer or of the program. Backward adds the
// gradient of parameter i into gradient(i) and then calls ready(i). As soon as all gradients of a
// bucket are ready, the bucket is reduced on the group's own thread or stream. After finish()
// gradient(i) holds the mean over ranks of what each rank has added since zero(). Each rank has the
// same weight, also if batches are unequal. Where ranks run out of samples, see join.h.
//
//   reducer.zero();                                    // once a step
//   { auto quiet = reducer.no_sync(); backward(); }    // accumulation: any number of times
//   backward();                                        // calls ready(i) for each i
//   reducer.finish();  reducer.clip(1.0);  optimizer();
//
// On GPUs each function takes the stream on which the program works there; null is the legacy
// default stream. ready(i, stream) comes after what the stream was given to write that gradient,
// whatever thread or stream it is. Nothing waits on the host but clip() and what says so; so a step
// can be captured into a CUDA graph, with begin_clip().
//
// At the start the parameters are broadcast from rank 0 and verified to be equal. Between finish()
// and the next ready() the program may use the group for other calls. Threads: one, but ready() may
// be called by several at a time. Errors: those of the group; usage, for a gradient that is ready
// twice, or never (unless find_unused is set); malformed, for a gradient that is not finite (if
// find_not_finite is set); refused, if the ranks' parameters differ (verify_replicas).
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "trainer/gradients/communication_hook.h"
#include "trainer/gradients/gradient_buckets.h"
#include "trainer/gradients/gradient_norm.h"
#include "trainer/gradients/reduce_times.h"
#include "trainer/group/process_group.h"
#include "trainer/training/agreement.h"

namespace ddprun::trainer {

struct ReducerOptions {
    // Sizes of the first bucket and of the others, see plan_buckets(). The defaults are PyTorch's.
    std::size_t first_bucket_bytes = std::size_t{1} << 20;
    std::size_t bucket_bytes = std::size_t{25} << 20;
    // Accepts that backward does not reach some parameters on some ranks; their gradients count as
    // zero there. Costs one small all-reduce a step, for which finish() waits on the host.
    bool find_unused = false;
    // Buckets can be cut into so many equal parts, see plan_buckets(). Set it to the number of
    // ranks where a training shall have the bits of one with a ShardedOptimizer (Gloo).
    std::size_t shards = 1;
    // How the buckets travel. Null: AllReduceHook.
    std::shared_ptr<CommunicationHook> hook = {};
    // false: the program has made the parameters equal on all ranks itself.
    bool broadcast_at_start = true;
    // finish() compares the parameters of all ranks in the first steps, and every N-th on request,
    // by hashes of what they hold then, which is before the update of this step. Ranks whose
    // parameters have drifted apart get an error that names the first one and the ranks. On a GPU
    // the host waits for it, and steps that are captured into a graph are left out. {0, 0}: never.
    ReplicaChecks verify_replicas = {};
    // finish() fails if a gradient holds an infinity or a NaN, and names the parameter and the
    // rank. Each gradient is read once before the reduction and once after it. Nothing more is sent
    // unless one is found. On a GPU finish() then waits on the host.
    bool find_not_finite = false;
    // The program's own block for the gradients: memory of the group's kind, from a multiple of
    // kGradientAlignment on, at least plan_buckets().bytes long. The gradients lie there as in
    // BucketPlan::slots: in the order of the parameters, each from a multiple of kGradientAlignment
    // on. make() fills it with zeros. It must outlive the reducer. Null: the reducer allocates it.
    void* block = nullptr;
    std::size_t block_bytes = 0;
    // On a GPU: the stream that has written the parameters.
    GpuStream stream = nullptr;
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

    // The memory of one parameter's gradient. With a hook that shares buckets out it holds the
    // mean, after finish(), only as far as it lies in this rank's part. It stays in place as long
    // as the reducer lives.
    Buffer gradient(std::size_t parameter) const;

    // All gradients with the names of their parameters, for verify_finite() and for optimizers.
    std::vector<NamedBuffer> gradients() const;

    // Sets all gradients to zero. Call it before the first backward pass of a step. After a step
    // that was given up before finish(), on all ranks, it begins again: the buckets of that step
    // are still sent, and their means are thrown away. Where other ranks have finished that step,
    // their next call is refused.
    Result<void> zero(GpuStream stream = nullptr);
    // Backward has added everything to this gradient, by what `stream` has been given. Backward
    // must not change it again until finish() returns, on a GPU: until what finish() was given.
    Result<void> ready(std::size_t parameter, GpuStream stream = nullptr);
    // All gradients are averaged: when it returns, on a GPU for what `stream` is given from then
    // on.
    Result<void> finish(GpuStream stream = nullptr);

    // A step of the other ranks in which this one has nothing to add: zero(), ready() for all, and
    // finish(). With find_unused this rank has used no parameter.
    Result<void> shadow(GpuStream stream = nullptr);

    // From the next finish() on gradients are sums divided by this number of ranks, for example of
    // those that have samples, in place of the group's size. All ranks give the same one. Errors:
    // usage, for less than one.
    Result<void> average_over(int ranks);

    // What verify_replicas does, now and for these parameters. All ranks call it. Waits on the
    // host.
    Result<void> compare_replicas(std::span<const NamedBuffer> parameters,
                                  GpuStream stream = nullptr);

    // How often finish() has averaged the gradients.
    std::uint64_t steps() const { return steps_; }

    // While this object lives, ready() reduces nothing. finish() must not be called. It needs a
    // name: an unnamed one ends at once.
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

    // Whether any rank had a gradient for this parameter in the last step, also in a pass under
    // no_sync(). Always true if find_unused is off.
    bool used(std::size_t parameter) const { return used_[parameter]; }

    // Scales all gradients so that their common norm is at most `most`. Returns the norm before
    // that. Call it after finish(), when the gradients are equal on all ranks, on the same stream.
    // If buckets are shared out, the ranks add up the norms of their parts. A norm that is not
    // finite leaves the gradients as they are. Errors: usage, if `most` is less than 0 or no
    // number.
    Result<double> clip(double most, GpuStream stream = nullptr);
    // The same in two halves, of which the first does not wait on the host.
    Result<void> begin_clip(double most, GpuStream stream = nullptr);
    Result<double> norm(GpuStream stream = nullptr);

    // The `most` of clip() since the last finish(); 0: it was not called.
    double clipped_to() const { return clipped_to_; }

    // What the hook still does with the memory of the gradients, or with the parameters, is done:
    // for whatever reads the parameters.
    Result<void> settle() { return hook_->release(); }

    // How long the communication of the last step took, and how much of it was hidden. On a GPU as
    // far as the host has seen buckets end, and not of steps in a graph.
    ReduceTimes times() const;
    const BucketPlan& plan() const { return plan_; }
    // The memory of a bucket, and the part of it that is this rank's: all of it if buckets are not
    // shared out.
    Buffer bucket(std::size_t index) const;
    Buffer own_part(std::size_t index) const;

  private:
    GradientReducer(ProcessGroup& group, std::vector<NamedBuffer> parameters,
                    const ReducerOptions& options);
    Result<void> allocate();
    Result<void> take_block();
    Result<void> launch(std::size_t bucket);
    Result<void> weigh(std::size_t bucket);
    Result<void> mark_unused(GpuStream stream);
    Result<void> note_written(std::size_t parameter, GpuStream stream);
    Result<void> note_not_finite(std::size_t bucket);
    Result<void> verify_reduced();
    Result<void> synchronize(const std::vector<NamedBuffer>& buffers);
    Result<void> broadcast_small(std::span<const Buffer> buffers);
    Result<void> ready_now(std::size_t parameter);
    Result<void> end_given_up(GpuStream stream);
    Result<double> over_ranks(double mine);
    bool on_gpu() const { return group_.memory() == Memory::gpu; }
    GpuStream own_stream() const { return stream_.get(); }

    // The sums of norm_: one for each parameter, and these.
    std::size_t clip_sum() const { return parameters_.size(); }
    std::size_t reduced_sum() const { return parameters_.size() + 1; }

    ProcessGroup& group_;
    const std::vector<NamedBuffer> parameters_;
    const ReducerOptions options_;
    BucketPlan plan_;
    BucketProgress progress_;
    std::shared_ptr<CommunicationHook> hook_;
    OwnGpuStream stream_;  // on a GPU: on which buckets wait for their gradients
    GroupMemory memory_;   // empty: the block is the program's
    std::shared_ptr<void> registration_;
    char* block_ = nullptr;
    GradientNorm norm_;
    std::mutex ready_mutex_;                      // of what ready() changes
    std::vector<std::vector<GpuEvent>> written_;  // for each bucket: after its gradients' kernels
    std::vector<Work> works_;                     // of this step, or of the last one
    std::vector<BucketTime::Point> begun_;        // of each of works_
    bool finished_ = false;                       // works_ are those of the last step
    BucketTime::Point finish_begun_{};
    std::vector<bool> used_;
    std::vector<bool> quietly_used_;  // since zero() or the last step, in passes under no_sync()
    bool shadowing_ = false;          // this rank's parameters are not those of the others
    int averaged_over_;               // ranks by which sums are divided
    std::uint64_t steps_ = 0;         // finish()es
    std::uint64_t comparisons_ = 0;   // each reads another sample
    double clipped_to_ = 0;
    bool quiet_ = false;
};

}  // namespace ddprun::trainer
