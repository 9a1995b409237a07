// The example's network on the CPU: its gradients against finite differences, and many ranks
// against one.
#include "examples/mlp.h"

#include <gmock/gmock.h>

#include <cmath>

#include "examples/dataset.h"
#include "tests/trainer/group_rank.h"
#include "trainer/training/distributed_sampler.h"

namespace ddprun::trainer {
namespace {

// Small and of unequal sizes, so that a mix-up of inputs and hidden units shows.
const example::MlpShape kShape{5, 7};

// The loss of a network that has these parameters and takes no step.
double loss_at(const std::vector<float>& parameters, const example::Batch& batch) {
    return static_cast<double>(
        example::make_cpu_mlp(kShape, parameters)->forward(batch.x, batch.y).value());
}

// Each gradient is the slope of the loss: the difference of two losses with the parameter a little
// up and a little down. A wrong backward pass would still train, only worse, so nothing else would
// show it.
TEST(Mlp, GradientsAreSlopes) {
    const auto batch = example::Dataset::made(64, kShape.inputs, 3).head(64, 0, 1);
    const auto parameters = example::initial_parameters(kShape, 4);
    auto mlp = example::make_cpu_mlp(kShape, parameters);
    test::GroupRank alone{Context()};
    auto reducer = GradientReducer::make(*alone.group, mlp->parameters()).value();
    ASSERT_TRUE(mlp->forward(batch.x, batch.y) && mlp->backward(*reducer) && reducer->finish());
    std::vector<float> gradients;
    for (const auto& [name, buffer] : reducer->gradients()) {
        const auto* values = static_cast<const float*>(buffer.data);
        gradients.insert(gradients.end(), values, values + buffer.count);
    }
    ASSERT_EQ(gradients.size(), parameters.size());
    // A smaller step drowns in the rounding of floats, a larger one leaves the straight part of the
    // curve. The bound below, 5e-4 and 1 %, is what is left of both.
    constexpr float kStep = 1e-2f;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        auto up = parameters, down = parameters;
        up[i] += kStep;
        down[i] -= kStep;
        const double slope = (loss_at(up, batch) - loss_at(down, batch)) / (2 * kStep);
        EXPECT_NEAR(static_cast<double>(gradients[i]), slope, 5e-4 + 0.01 * std::abs(slope))
            << "parameter " << i;
    }
}

// The parameters after ten steps through sampler and reducer. Buckets of 16 bytes, so that there
// are several of them and the order of their reductions counts.
std::vector<float> trained(ProcessGroup& group, std::int64_t batch) {
    const auto data = example::Dataset::made(512, kShape.inputs, 3);
    auto mlp = example::make_cpu_mlp(kShape, example::initial_parameters(kShape, 4));
    ReducerOptions options;
    options.first_bucket_bytes = options.bucket_bytes = 16;
    auto reducer = GradientReducer::make(group, mlp->parameters(), options).value();
    auto sampler = DistributedSampler::make({512, 3}, group.rank(), group.size()).value();
    for (int step = 0; step < 10; ++step) {
        const auto part = data.batch(sampler.next(batch));
        if (!reducer->zero() || !mlp->forward(part.x, part.y)) return {};
        if (!mlp->backward(*reducer) || !reducer->finish()) return {};
        if (!mlp->update(mlp->parameters(), reducer->gradients(), 0.05f, 0.9f)) return {};
    }
    std::vector<float> values;
    for (const auto& [name, buffer] : mlp->parameters()) {
        const auto* held = static_cast<const float*>(buffer.data);
        values.insert(values.end(), held, held + buffer.count);
    }
    return values;
}

// Ten steps of four ranks with a batch of 8 are ten steps of one rank with a batch of 32. Only the
// order of the additions differs, which the bound of 1e-5 allows for. A mean that is taken wrongly
// (a sum, or a mean over the wrong number of ranks) is far outside.
TEST(Mlp, ManyRanksAreOneWithALargerBatch) {
    auto ends = test::run_ranks(4, [&](const Context& context) {
        test::GroupRank me(context);
        const auto many = trained(*me.group, 8);
        test::GroupRank alone{Context()};
        const auto one = trained(*alone.group, 32);
        if (many.empty() || many.size() != one.size()) return 1;
        for (std::size_t i = 0; i < one.size(); ++i)
            if (std::abs(many[i] - one[i]) > 1e-5f) return 2;
        return 0;
    });
    EXPECT_EQ(ends, test::Ends({0, 0, 0, 0}));
}

}  // namespace
}  // namespace ddprun::trainer
