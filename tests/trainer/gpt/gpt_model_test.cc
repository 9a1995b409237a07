// The whole GPT on the CPU: its gradients against differences of the loss, its bits with other
// numbers of threads, a training that learns.
#include "examples/gpt/gpt_model.h"

#include <gmock/gmock.h>

#include <cmath>

#include "examples/gpt/cpu_kernels.h"
#include "examples/random.h"
#include "tests/trainer/group_rank.h"

// OpenMP's; null in a build without it.
extern "C" void omp_set_num_threads(int threads) __attribute__((weak));

namespace example::gpt {
namespace {

using ddprun::trainer::Context;
using ddprun::trainer::GradientReducer;
using ddprun::trainer::Memory;
namespace test = ddprun::trainer::test;

// Small, of unequal sizes, so that a mix-up shows; more positions than a block of attention.
const GptShape kShape{7, 40, 2, 3, 12};

Batch batch_of(int rows, int length) {
    Batch batch{{}, {}, rows, length};
    for (int i = 0; i < rows * length; ++i) {
        batch.tokens.push_back(static_cast<int>(mix(5, static_cast<std::uint64_t>(i)) % 7));
        batch.targets.push_back(static_cast<int>(mix(6, static_cast<std::uint64_t>(i)) % 7));
    }
    return batch;
}

// First parameters with wider weights, and biases that are not 0, so that each gradient matters.
std::vector<float> wide_parameters() {
    auto values = first_parameters(kShape, 4);
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = values[i] == 1 ? 1 + 0.3f * uniform(8, i) : 0.3f * uniform(8, i);
    return values;
}

double loss_at(const std::vector<float>& parameters, const Batch& batch, const Kernels& kernels) {
    return make_gpt(kShape, parameters, kernels, Memory::host).value()->forward(batch, 1).value();
}

class GptTest : public testing::TestWithParam<CpuKind> {};
std::string name_of(const testing::TestParamInfo<CpuKind>& info) {
    const char* names[] = {"Any", "Avx2", "Avx512"};
    return names[static_cast<int>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(Each, GptTest,
                         testing::Values(CpuKind::any, CpuKind::avx2, CpuKind::avx512), name_of);

// Some numbers of each tensor. Two batches are accumulated, so a kernel that sets where it should
// add shows too.
TEST_P(GptTest, GradientsAreSlopes) {
    const auto* kernels = cpu_kernels_of(GetParam());
    if (!kernels) GTEST_SKIP() << "this CPU or build has no such kernels";
    const auto parameters = wide_parameters();
    auto gpt = make_gpt(kShape, parameters, *kernels, Memory::host).value();
    test::GroupRank alone{Context()};
    auto reducer = GradientReducer::make(*alone.group, gpt->parameters()).value();
    const Batch one = batch_of(2, 40), two = batch_of(3, 9);
    {
        auto quiet = reducer->no_sync();
        ASSERT_TRUE(gpt->forward(one, 0.25f) && gpt->backward(*reducer));
    }
    ASSERT_TRUE(gpt->forward(two, 0.75f) && gpt->backward(*reducer) && reducer->finish());
    constexpr float kStep = 3e-3f;
    const auto all = tensors(kShape);
    for (std::size_t t = 0; t < all.size(); ++t) {
        const auto* gradient = static_cast<const float*>(reducer->gradient(t).data);
        for (std::size_t i = 0; i < all[t].count; i += 1 + all[t].count / 5) {
            auto up = parameters, down = parameters;
            up[all[t].offset + i] += kStep;
            down[all[t].offset + i] -= kStep;
            auto loss = [&](const std::vector<float>& at) {
                return 0.25 * loss_at(at, one, *kernels) + 0.75 * loss_at(at, two, *kernels);
            };
            const double slope = (loss(up) - loss(down)) / (2 * static_cast<double>(kStep));
            EXPECT_NEAR(static_cast<double>(gradient[i]), slope, 3e-4 + 0.02 * std::abs(slope))
                << all[t].name << "[" << i << "]";
        }
    }
}

// Ten steps, and what they end with.
std::vector<float> trained(int threads) {
    if (omp_set_num_threads) omp_set_num_threads(threads);
    auto gpt = make_gpt(kShape, first_parameters(kShape, 4), cpu_kernels(), Memory::host).value();
    test::GroupRank alone{Context()};
    auto reducer = GradientReducer::make(*alone.group, gpt->parameters()).value();
    const Batch batch = batch_of(2, 40);
    double first = 0, last = 0;
    for (int step = 1; step <= 10; ++step) {
        EXPECT_TRUE(reducer->zero());
        last = gpt->forward(batch, 1).value();
        if (step == 1) first = last;
        EXPECT_TRUE(gpt->backward(*reducer) && reducer->finish());
        AdamOptions options;
        options.rate = 0.01f;
        options.step = step;
        EXPECT_TRUE(gpt->update(*reducer, options));
    }
    // At first all seven tokens are equally likely.
    EXPECT_NEAR(first, std::log(7.0), 0.05);
    EXPECT_LT(last, first - 0.1);
    std::vector<float> values;
    for (const auto& [name, buffer] : gpt->parameters()) {
        const auto* own = static_cast<const float*>(buffer.data);
        values.insert(values.end(), own, own + buffer.count);
    }
    return values;
}

// A worker has as many threads as the launcher gives it CPUs. That must not change the bits.
TEST(Gpt, LearnsTheSameBitsWithAnyNumberOfThreads) {
    const auto once = trained(1);
    EXPECT_EQ(trained(3), once);
    EXPECT_EQ(trained(1), once);
}

// The logits after some tokens are those of the last position, whatever ran before.
TEST(Gpt, NextDependsOnTheTokensOnly) {
    auto gpt = make_gpt(kShape, wide_parameters(), cpu_kernels(), Memory::host).value();
    const Batch batch = batch_of(2, 40);
    const std::vector<int> tokens(batch.tokens.begin(), batch.tokens.begin() + 5);
    const auto logits = gpt->next(tokens).value();
    ASSERT_EQ(logits.size(), 7u);
    ASSERT_TRUE(gpt->forward(batch, 1));
    EXPECT_EQ(gpt->next(tokens).value(), logits);
    EXPECT_NE(gpt->next(std::span(tokens).first(4)).value(), logits);
}

}  // namespace
}  // namespace example::gpt
