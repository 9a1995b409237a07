// When the scale grows and when it shrinks.
#include "trainer/precision/loss_scale.h"

#include <cmath>
#include <limits>

namespace ddprun::trainer {
namespace {

constexpr double kMost = std::numeric_limits<float>::max();

Error wrong(const std::string& option, double value, const char* wanted) {
    return usage_error("the loss scale's " + option + " is " + text_of(value) + "; it must be " +
                       wanted);
}

}  // namespace

Result<LossScale> LossScale::make(const LossScaleOptions& options) {
    // Comparisons with a NaN are false, so it is refused, too.
    if (!(options.initial > 0 && options.initial <= kMost))
        return wrong("initial value", options.initial, "above 0, and a float");
    if (!(options.growth >= 1 && options.growth <= kMost))
        return wrong("growth", options.growth, "at least 1");
    if (!(options.backoff > 0 && options.backoff < 1))
        return wrong("backoff", options.backoff, "between 0 and 1");
    if (options.interval < 1)
        return wrong("interval", static_cast<double>(options.interval), "at least 1 step");
    if (!(options.least >= 0 && options.least <= options.initial))
        return wrong("least value", options.least, "from 0 to the initial value");
    return LossScale(options);
}

// A scale that is no float any more would make each loss infinite.
Result<void> LossScale::update(bool finite) {
    if (finite) {
        if (++good_ < options_.interval) return {};
        good_ = 0;
        if (value_ * options_.growth <= kMost) value_ *= options_.growth;
        return {};
    }
    good_ = 0;
    ++skipped_;
    const double lower = value_ * options_.backoff;
    if (lower < options_.least)
        return Error(ErrorCode::malformed,
                     "gradients are not finite with a loss scale of " + text_of(value_) +
                         ", and the least is " + text_of(options_.least) + " (" +
                         std::to_string(skipped_) +
                         " steps skipped); look for an infinity or a NaN in the loss or the data");
    value_ = lower;
    return {};
}

Metadata LossScale::words() const {
    return {{"loss_scale", text_of(value_)},
            {"loss_scale.good_steps", text_of(good_)},
            {"loss_scale.skipped", text_of(skipped_)}};
}

Result<void> LossScale::resume(const Metadata& words) {
    const auto value = value_of<double>(words, "loss_scale");
    if (!value) return value.error();
    const auto good = value_of<std::int64_t>(words, "loss_scale.good_steps");
    if (!good) return good.error();
    const auto skipped = value_of<std::int64_t>(words, "loss_scale.skipped");
    if (!skipped) return skipped.error();
    if (!(*value > 0 && *value <= kMost))
        return wrong_value("loss_scale", text_of(*value), "a float above 0");
    value_ = *value;
    good_ = *good;
    skipped_ = *skipped;
    return {};
}

}  // namespace ddprun::trainer
