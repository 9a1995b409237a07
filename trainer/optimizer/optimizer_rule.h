// OptimizerRule: how values follow their gradients: SGD with momentum, Adam, AdamW. Each element is
// updated by itself, so any piece of a parameter can be.
//
// The order of the operations is that of this repository's examples, and for Adam PyTorch's: the
// same gradients give the same bits. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ddprun::trainer {

struct OptimizerRule {
    enum class Kind { sgd, adam, adamw };
    Kind kind = Kind::sgd;
    float momentum = 0.9f;               // of SGD; 0: none, and no state
    float beta1 = 0.9f, beta2 = 0.999f;  // of Adam
    float epsilon = 1e-8f;
    float decay = 0;  // of weights: added to the gradient; AdamW takes it off the value itself

    static OptimizerRule sgd(float momentum, float decay = 0);
    static OptimizerRule adam(float beta1 = 0.9f, float beta2 = 0.999f, float decay = 0);
    static OptimizerRule adamw(float beta1 = 0.9f, float beta2 = 0.999f, float decay = 0.01f);
};

// What the rule keeps for each element, by the names that stand before those of the parameters in
// snapshots: "momentum."; "exp_avg." and "exp_avg_sq.".
std::vector<std::string> state_names(const OptimizerRule& rule);

// All numbers of a rule, for comparing those of the ranks; and what one of them says: "beta1 0.9",
// "AdamW".
std::vector<double> numbers_of(const OptimizerRule& rule);
std::string describe_number(std::size_t index, double number);

// One step of the rule. All spans have the same size; `state` has one for each of state_names(), of
// zeros before the first step. `step` counts from 1.
void update(const OptimizerRule& rule, std::int64_t step, float rate, std::span<float> values,
            std::span<const float> gradient, std::span<const std::span<float>> state);

}  // namespace ddprun::trainer
