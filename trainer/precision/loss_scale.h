// LossScale: the number by which a loss is multiplied so that small gradients do not become zero in
// float16. It grows while gradients are finite, and shrinks when they are not (as in PyTorch's
// GradScaler). bfloat16 has the range of float32 and needs none.
//
// Pure. All ranks give it the same answers, so it has the same value on all of them.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "trainer/snapshot/format/metadata.h"

namespace ddprun::trainer {

// The defaults are PyTorch's. Powers of two lose no bits.
struct LossScaleOptions {
    double initial = 65536;
    double growth = 2;             // the factor after `interval` good steps
    double backoff = 0.5;          // the factor after a step that was skipped
    std::int64_t interval = 2000;  // good steps in a row
    double least = 1.0 / 16384;    // a scale below it is an error: the loss itself is not finite
};

class LossScale {
  public:
    // Errors: usage, with the option that is wrong.
    static Result<LossScale> make(const LossScaleOptions& options = {});

    double value() const { return value_; }
    // How many steps were skipped since the training began.
    std::int64_t skipped() const { return skipped_; }

    // At the end of a step: whether its gradients were finite. Errors: malformed, if the scale
    // would fall below `least`; it then stays.
    Result<void> update(bool finite);

    // What a snapshot keeps: "loss_scale", "loss_scale.good_steps" and "loss_scale.skipped".
    Metadata words() const;
    // Continues with the words of a snapshot. Errors: not_found; malformed, also for a scale that
    // is not a positive number.
    Result<void> resume(const Metadata& words);

  private:
    explicit LossScale(const LossScaleOptions& options)
        : options_(options), value_(options.initial) {}

    LossScaleOptions options_;
    double value_;
    std::int64_t good_ = 0;  // finite steps since the scale changed, fewer than options_.interval
    std::int64_t skipped_ = 0;
};

}  // namespace ddprun::trainer
