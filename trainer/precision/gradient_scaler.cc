// Looks for values that are not finite, and divides.
#include "trainer/precision/gradient_scaler.h"

#include <cmath>
#include <cstdlib>

#include "trainer/gradients/float_math.h"

namespace ddprun::trainer {

Result<GradientScaler> GradientScaler::make(ProcessGroup& group, const ScalerOptions& options) {
    const auto scale = LossScale::make(options.scale);
    if (!scale) return scale.error();
    return GradientScaler(group, options, *scale);
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

// Also what decides when the scale will change.
Result<void> GradientScaler::compare_scales() {
    const auto words = scale_.words();
    std::vector<NamedNumber> numbers;
    for (const auto& [key, text] : words)
        numbers.push_back({"\"" + key + "\"", std::strtod(text.c_str(), nullptr)});
    const auto same = verify_equal_numbers(*group_, numbers);
    if (same || same.error().code() != ErrorCode::refused) return same;
    return Error(ErrorCode::refused, "in step " + std::to_string(steps_) + " of this scaler " +
                                         same.error().sentence() +
                                         "; all ranks must resume it from the same snapshot");
}

Result<bool> GradientScaler::unscale(std::span<const NamedBuffer> gradients, GpuStream stream) {
    for (const auto& [name, buffer] : gradients)
        if (buffer.type == DataType::float16 || is_integer(buffer.type))
            return usage_error("gradient \"" + name + "\" is " +
                               std::string(to_string(buffer.type)) +
                               ", which cannot hold it without its scale; give unscale() those of "
                               "MasterWeights");
    if (options_.verify_replicas.due(++steps_))
        if (auto same = compare_scales(); !same) return same.error();
    const auto found = first_not_finite(gradients, stream);
    if (!found) return found.error();
    bool finite = !found->has_value();
    if (options_.sharded) {
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
