// The example's network on the CPU: its gradients against finite differences, and many ranks
// against one.
#include "examples/mlp.h"

#include <gmock/gmock.h>

#include <cmath>
#include <utility>
#include <vector>

#include "examples/dataset.h"
#include "examples/mlp_loops.h"
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

// Numbers in a fixed order, and a place for the gradients, of a network that is larger than a block
// of the loops and fits into no number of vectors.
struct Loops {
    static constexpr long kInputs = 5, kHidden = 259 + 256, kSamples = 3;
    // `shift`: so many floats above an address where vectors could begin.
    explicit Loops(std::size_t shift) : memory(shift + 4 * kHidden * (kInputs + 2) + 64) {
        float* next = memory.data() + shift;
        const auto take = [&](long count) { return std::exchange(next, next + count); };
        w1 = take(kInputs * kHidden), b1 = take(kHidden), w2 = take(kHidden);
        d_w1 = take(kInputs * kHidden), d_b1 = take(kHidden), d_w2 = take(kHidden), d_b2 = take(1);
        x = take(kInputs * kSamples), a = take(kHidden * kSamples), out = take(kSamples);
        for (float* value = w1; value < d_w1; ++value)
            *value = std::sin(static_cast<float>(value - w1));
        for (long i = 0; i < kInputs * kSamples; ++i) x[i] = std::cos(static_cast<float>(i));
    }
    void run() {
        const example::MlpNumbers net{kInputs, kHidden, w1, b1, w2, 0.5f};
        example::predict(net, x, kSamples, a, out);
        example::add_output_gradients(net, a, out, kSamples, d_w2, d_b2);
        example::add_hidden_gradients(net, x, a, out, kSamples, d_w1, d_b1);
    }
    std::vector<float> results() const { return {d_w1, out + kSamples}; }

    std::vector<float> memory;
    float *w1, *b1, *w2, *d_w1, *d_b1, *d_w2, *d_b2, *x, *a, *out;
};

// Against sums in double precision, one unit and one sample at a time.
TEST(Mlp, BlocksAndVectorsAreAllOfTheSum) {
    Loops loops(0);
    loops.run();
    for (long s = 0; s < Loops::kSamples; ++s) {
        double out = 0.5;
        for (long h = 0; h < Loops::kHidden; ++h) {
            double sum = loops.b1[h];
            for (long i = 0; i < Loops::kInputs; ++i)
                sum += static_cast<double>(loops.w1[h * Loops::kInputs + i]) *
                       loops.x[s * Loops::kInputs + i];
            ASSERT_NEAR(loops.a[s * Loops::kHidden + h], std::tanh(sum), 1e-6) << h;
            out += loops.w2[h] * std::tanh(sum);
        }
        ASSERT_NEAR(loops.out[s], out, 1e-4) << s;
    }
    double d_b2 = 0;
    for (long s = 0; s < Loops::kSamples; ++s) d_b2 += loops.out[s];
    EXPECT_NEAR(*loops.d_b2, d_b2, 1e-4);
    for (long h = 0; h < Loops::kHidden; ++h) {
        double weight = 0, bias = 0, first = 0;
        for (long s = 0; s < Loops::kSamples; ++s) {
            const double a = loops.a[s * Loops::kHidden + h];
            const double slope = loops.out[s] * loops.w2[h] * (1 - a * a);
            weight += loops.out[s] * a;
            bias += slope;
            first += slope * loops.x[s * Loops::kInputs + Loops::kInputs - 1];
        }
        ASSERT_NEAR(loops.d_w2[h], weight, 1e-4) << h;
        ASSERT_NEAR(loops.d_b1[h], bias, 1e-4) << h;
        ASSERT_NEAR(loops.d_w1[h * Loops::kInputs + Loops::kInputs - 1], first, 1e-4) << h;
    }
}

// After a restart the memory lies elsewhere, and the training has the same bits.
TEST(Mlp, BitsDoNotDependOnTheAddress) {
    Loops one(0);
    one.run();
    for (std::size_t shift = 1; shift < 16; ++shift) {
        Loops other(shift);
        other.run();
        EXPECT_EQ(one.results(), other.results()) << shift;
    }
}

// The loops are compiled for finite numbers. Those that are not must come out all the same: the
// search for them, and the skipped steps in float16, rest on it.
TEST(Mlp, NumbersThatAreNotFiniteComeOut) {
    for (const float bad : {INFINITY, -INFINITY, NAN}) {
        Loops loops(0);
        loops.x[1] = bad;  // of the first sample; tanh of infinity is 1
        loops.run();
        EXPECT_FALSE(std::isfinite(loops.d_w1[1])) << bad;
        EXPECT_TRUE(std::isfinite(loops.out[1]));
        std::vector<float> momenta(1), values(1);
        example::descend(values.data(), momenta.data(), &bad, 1, 1, 0.9f);
        EXPECT_FALSE(std::isfinite(values[0])) << bad;
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
