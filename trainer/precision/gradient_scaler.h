// GradientScaler: a training whose loss is scaled (loss_scale.h). It finds gradients that are not
// finite, so that all ranks skip the same steps, and divides the others by the scale.
//
//   backward of loss * scaler.scale();
//   reducer.finish();
//   if (scaler.unscale(reducer.gradients()).value()) {     // or those of MasterWeights
//       clip; optimizer;
//   }                                                      // else: this step is skipped
//
// If a gradient of one rank is not finite, its mean over the ranks is not finite on any of them.
// So for gradients of a GradientReducer all ranks see the same, and nothing is sent. Its
// find_not_finite must be off: that makes an error of what is skipped here.
//
// Waits on the host for the answer, also on a GPU. Thread: one. Errors: those of LossScale, with
// the first gradient that is not finite; usage, for gradients in float16, which cannot hold the
// result of the division (use MasterWeights); refused, if the ranks have other scales; unavailable
// (GPU); those of the group.
#pragma once

#include <span>

#include "trainer/gradients/gradient_norm.h"
#include "trainer/precision/loss_scale.h"
#include "trainer/training/agreement.h"

namespace ddprun::trainer {

struct ScalerOptions {
    LossScaleOptions scale;
    // Each rank has other gradients: its own part of them, or such that were not averaged. One
    // small all-reduce a step tells all ranks whether one of them has to skip.
    bool sharded = false;
    // unscale() compares the scale of all ranks in the first steps, and every N-th on request.
    ReplicaChecks verify_replicas = {};
};

class GradientScaler {
  public:
    // `group` must outlive the scaler. Errors: usage, with the option that is wrong.
    static Result<GradientScaler> make(ProcessGroup& group, const ScalerOptions& options = {});

    // What the loss is multiplied by before backward.
    double scale() const { return scale_.value(); }
    // For snapshots and reports.
    LossScale& state() { return scale_; }
    const LossScale& state() const { return scale_; }

    // Once a step, with all gradients, after the work that was given to `stream`. True: they are
    // divided by the scale, and are finite on all ranks. False: leave the parameters as they are
    // and go on with the next step; what the gradients hold is of no use. Both change the scale of
    // the next step as LossScale says.
    Result<bool> unscale(std::span<const NamedBuffer> gradients, GpuStream stream = nullptr);

  private:
    GradientScaler(ProcessGroup& group, const ScalerOptions& options, const LossScale& scale)
        : group_(&group), options_(options), scale_(scale) {}
    Result<std::optional<std::size_t>> first_not_finite(std::span<const NamedBuffer> gradients,
                                                        GpuStream stream);
    Result<void> compare_scales();
    Result<void> update(std::span<const NamedBuffer> gradients, std::optional<std::size_t> found,
                        bool finite);

    ProcessGroup* group_;
    ScalerOptions options_;
    LossScale scale_;
    std::uint64_t steps_ = 0;
    GradientNorm norm_;
    std::size_t sums_ = 0;  // of norm_
};

}  // namespace ddprun::trainer
