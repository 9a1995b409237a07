// The loops of the optimizers.
#include "trainer/optimizer/optimizer_rule.h"

#include <cmath>

#include "trainer/snapshot/format/metadata.h"

namespace ddprun::trainer {
namespace {

void sgd(const OptimizerRule& rule, float rate, std::span<float> values,
         std::span<const float> gradient, float* momentum) {
    for (std::size_t i = 0; i < values.size(); ++i) {
        float step = gradient[i];
        if (rule.decay > 0) step += rule.decay * values[i];
        if (momentum) step = momentum[i] = rule.momentum * momentum[i] + step;
        values[i] -= rate * step;
    }
}

void adam(const OptimizerRule& rule, std::int64_t step, float rate, std::span<float> values,
          std::span<const float> gradient, float* first, float* second) {
    const auto steps = static_cast<double>(step);
    const float size = rate / static_cast<float>(1 - std::pow(double{rule.beta1}, steps));
    const float root = std::sqrt(static_cast<float>(1 - std::pow(double{rule.beta2}, steps)));
    const bool decoupled = rule.kind == OptimizerRule::Kind::adamw;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const float value = decoupled ? values[i] * (1 - rate * rule.decay) : values[i];
        const float g = decoupled ? gradient[i] : gradient[i] + rule.decay * values[i];
        first[i] += (g - first[i]) * (1 - rule.beta1);
        second[i] = second[i] * rule.beta2 + (1 - rule.beta2) * g * g;
        values[i] = value - size * first[i] / (std::sqrt(second[i]) / root + rule.epsilon);
    }
}

}  // namespace

OptimizerRule OptimizerRule::sgd(float momentum, float decay) {
    OptimizerRule rule;
    rule.momentum = momentum;
    rule.decay = decay;
    return rule;
}

OptimizerRule OptimizerRule::adam(float beta1, float beta2, float decay) {
    OptimizerRule rule;
    rule.kind = Kind::adam;
    rule.beta1 = beta1;
    rule.beta2 = beta2;
    rule.decay = decay;
    return rule;
}

OptimizerRule OptimizerRule::adamw(float beta1, float beta2, float decay) {
    OptimizerRule rule = adam(beta1, beta2, decay);
    rule.kind = Kind::adamw;
    return rule;
}

std::vector<std::string> state_names(const OptimizerRule& rule) {
    if (rule.kind != OptimizerRule::Kind::sgd) return {"exp_avg.", "exp_avg_sq."};
    if (rule.momentum > 0) return {"momentum."};
    return {};
}

std::vector<double> numbers_of(const OptimizerRule& rule) {
    return {static_cast<double>(rule.kind),
            rule.momentum,
            rule.beta1,
            rule.beta2,
            rule.epsilon,
            rule.decay};
}

std::string describe_number(std::size_t index, double number) {
    constexpr const char* kKinds[] = {"SGD", "Adam", "AdamW"};
    constexpr const char* kNames[] = {"", "momentum ", "beta1 ", "beta2 ", "epsilon ", "decay "};
    if (index == 0) return kKinds[static_cast<std::size_t>(number)];
    return kNames[index] + text_of(static_cast<float>(number));
}

void update(const OptimizerRule& rule, std::int64_t step, float rate, std::span<float> values,
            std::span<const float> gradient, std::span<const std::span<float>> state) {
    if (rule.kind == OptimizerRule::Kind::sgd)
        return sgd(rule, rate, values, gradient, state.empty() ? nullptr : state[0].data());
    adam(rule, step, rate, values, gradient, state[0].data(), state[1].data());
}

}  // namespace ddprun::trainer
