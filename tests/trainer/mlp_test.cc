// The example's network: its gradients against finite differences, and many ranks against one.
#include "examples/mlp.h"

#include <gmock/gmock.h>

#include <cmath>

#include "examples/dataset.h"
#include "tests/trainer/group_rank.h"

namespace ddprun::trainer {
namespace {

const example::MlpShape kShape{5, 7};

double loss_at(example::Mlp& mlp, const std::vector<float>& parameters,
               const example::Batch& batch) {
    EXPECT_TRUE(mlp.restore(parameters, std::vector<float>(parameters.size())));
    EXPECT_TRUE(mlp.compute(batch.x, batch.y, 0));
    return static_cast<double>(mlp.tail()->loss);
}

// Each gradient is the slope of the loss, within what floats allow for a step of 1e-2.
TEST(Mlp, GradientsAreSlopes) {
    auto data = example::Dataset::made(64, kShape.inputs, 3);
    const auto batch = data.batch(0, 64, 0, 1);
    auto mlp = example::make_cpu_mlp(kShape);
    const auto parameters = example::initial_parameters(kShape, 4);
    (void)loss_at(*mlp, parameters, batch);
    const auto* held = static_cast<const float*>(mlp->gradients().data);
    const std::vector<float> gradients(held, held + parameters.size());
    constexpr float kStep = 1e-2f;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        auto up = parameters, down = parameters;
        up[i] += kStep;
        down[i] -= kStep;
        const double slope = (loss_at(*mlp, up, batch) - loss_at(*mlp, down, batch)) / (2 * kStep);
        EXPECT_NEAR(static_cast<double>(gradients[i]), slope, 5e-4 + 0.01 * std::abs(slope))
            << "parameter " << i;
    }
}

// Ten steps of four ranks with a batch of 8 are ten steps of one with 32, within 1e-5: only the
// order of the additions differs.
TEST(Mlp, ManyRanksAreOneWithALargerBatch) {
    auto train = [](ProcessGroup& group, int batch) {
        auto data = example::Dataset::made(512, kShape.inputs, 3);
        auto mlp = example::make_cpu_mlp(kShape);
        const auto first = example::initial_parameters(kShape, 4);
        (void)mlp->restore(first, std::vector<float>(first.size()));
        for (std::int64_t step = 0; step < 10; ++step) {
            const auto part = data.batch(step * 32, batch, group.rank(), group.size());
            (void)mlp->compute(part.x, part.y, 0);
            if (!group.all_reduce(mlp->gradients(), ReduceOp::avg)) return std::vector<float>();
            (void)mlp->update(0.05f, 0.9f);
        }
        return mlp->parameters().value();
    };
    auto ends = test::run_ranks(4, [&](const Context& context) {
        test::GroupRank me(context);
        const auto many = train(*me.group, 8);
        test::GroupRank alone{Context()};
        const auto one = train(*alone.group, 32);
        if (many.empty() || many.size() != one.size()) return 1;
        for (std::size_t i = 0; i < one.size(); ++i)
            if (std::abs(many[i] - one[i]) > 1e-5f) return 2;
        return 0;
    });
    EXPECT_EQ(ends, test::Ends({0, 0, 0, 0}));
}

}  // namespace
}  // namespace ddprun::trainer
