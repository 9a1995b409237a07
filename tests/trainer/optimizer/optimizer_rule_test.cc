// The rules of the optimizers, against their formulas in double.
#include "trainer/optimizer/optimizer_rule.h"

#include <gmock/gmock.h>

#include <cmath>

namespace ddprun::trainer {
namespace {

// Ten steps of a rule, and of the formula, for gradients that change their sign.
struct Both {
    std::vector<float> values{1, -2, 0.5f};
    std::vector<double> expected{1, -2, 0.5};
    std::vector<float> first = std::vector<float>(3), second = std::vector<float>(3);
    std::vector<double> m = std::vector<double>(3), v = std::vector<double>(3);

    static float gradient(int step, std::size_t i) {
        return std::sin(static_cast<float>(step) + static_cast<float>(i));
    }

    template <class Formula>
    void run(const OptimizerRule& rule, Formula&& formula) {
        std::vector<std::span<float>> state{std::span(first), std::span(second)};
        state.resize(state_names(rule).size());
        for (int step = 1; step <= 10; ++step) {
            std::vector<float> gradients;
            for (std::size_t i = 0; i < 3; ++i) gradients.push_back(gradient(step, i));
            update(rule, step, 0.1f, values, gradients, state);
            for (std::size_t i = 0; i < 3; ++i)
                formula(step, static_cast<double>(gradients[i]), expected[i], m[i], v[i]);
        }
        for (std::size_t i = 0; i < 3; ++i)
            EXPECT_NEAR(static_cast<double>(values[i]), expected[i], 1e-5) << i;
    }
};

TEST(OptimizerRule, IsSgdWithMomentumAndDecay) {
    Both().run(OptimizerRule::sgd(0.9f, 0.01f), [](int, double g, double& x, double& m, double&) {
        m = 0.9 * m + g + 0.01 * x;
        x -= 0.1 * m;
    });
    EXPECT_THAT(state_names(OptimizerRule::sgd(0.9f)), testing::ElementsAre("momentum."));
}

TEST(OptimizerRule, HasNoStateWithoutMomentum) {
    Both().run(OptimizerRule::sgd(0),
               [](int, double g, double& x, double&, double&) { x -= 0.1 * g; });
    EXPECT_TRUE(state_names(OptimizerRule::sgd(0)).empty());
}

// The part of both that does not decay weights.
double adam_step(int step, double g, double& m, double& v) {
    m = 0.8 * m + 0.2 * g;
    v = 0.9 * v + 0.1 * g * g;
    return 0.1 * (m / (1 - std::pow(0.8, step))) /
           (std::sqrt(v / (1 - std::pow(0.9, step))) + 1e-8);
}

TEST(OptimizerRule, IsAdamWhoseDecayIsPartOfTheGradient) {
    Both().run(OptimizerRule::adam(0.8f, 0.9f, 0.1f),
               [](int step, double g, double& x, double& m, double& v) {
                   x -= adam_step(step, g + 0.1 * x, m, v);
               });
}

TEST(OptimizerRule, IsAdamWWhoseDecayIsNot) {
    Both().run(OptimizerRule::adamw(0.8f, 0.9f, 0.1f),
               [](int step, double g, double& x, double& m, double& v) {
                   x *= 1 - 0.1 * 0.1;
                   x -= adam_step(step, g, m, v);
               });
    EXPECT_THAT(state_names(OptimizerRule::adamw()),
                testing::ElementsAre("exp_avg.", "exp_avg_sq."));
}

}  // namespace
}  // namespace ddprun::trainer
