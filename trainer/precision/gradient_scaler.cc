// Looks for values that are not finite, and divides.
#include "trainer/precision/gradient_scaler.h"

#include <cmath>

#include "trainer/gradients/float_math.h"

namespace ddprun::trainer {

Result<GradientScaler> GradientScaler::make(ProcessGroup& group, const ScalerOptions& options) {
    const auto scale = LossScale::make(options.scale);
    if (!scale) return scale.error();
    return GradientScaler(group, options.sharded, *scale);
}

// One sum of squares for each gradient: it is not finite if one of its values is not.
Result<std::optional<std::size_t>> GradientScaler::first_not_finite(
    std::span<const NamedBuffer> gradients, GpuStream stream) {
    if (sums_ < gradients.size()) {
        if (auto done = norm_.prepare(group_->memory(), gradients.size()); !done)
            return done.error();
        sums_ = gradients.size();
    }
    if (gradients.empty()) return std::optional<std::size_t>();
    if (auto done = norm_.reset(0, gradients.size(), stream); !done) return done.error();
    for (std::size_t i = 0; i < gradients.size(); ++i)
        if (auto done = norm_.add(i, gradients[i].buffer, 0, stream); !done) return done.error();
    const auto sums = norm_.read(0, gradients.size(), stream);
    if (!sums) return sums.error();
    for (std::size_t i = 0; i < sums->size(); ++i)
        if (!std::isfinite((*sums)[i])) return std::optional(i);
    return std::optional<std::size_t>();
}

Result<bool> GradientScaler::unscale(std::span<const NamedBuffer> gradients, GpuStream stream) {
    for (const auto& [name, buffer] : gradients)
        if (buffer.type == DataType::float16 || is_integer(buffer.type))
            return usage_error("gradient \"" + name + "\" is " +
                               std::string(to_string(buffer.type)) +
                               ", which cannot hold it without its scale; give unscale() those of "
                               "MasterWeights");
    const auto found = first_not_finite(gradients, stream);
    if (!found) return found.error();
    bool finite = !found->has_value();
    if (sharded_) {
        const auto any = any_rank(*group_, !finite);
        if (!any) return any.error();
        finite = !*any;
    }
    if (finite)
        for (const auto& [name, buffer] : gradients)
            if (auto done = divide_values(group_->memory(), buffer, scale(), stream); !done)
                return done.error();
    if (auto done = update(gradients, *found, finite); !done) return done.error();
    return finite;
}

Result<void> GradientScaler::update(std::span<const NamedBuffer> gradients,
                                    std::optional<std::size_t> found, bool finite) {
    auto done = scale_.update(finite);
    if (done || !found) return done;
    return Error(done.error().code(), "the first is \"" + gradients[*found].name + "\" of rank " +
                                          std::to_string(group_->rank()) + ": " +
                                          done.error().sentence());
}

}  // namespace ddprun::trainer
