// Trainings in 16 bits: real processes with Gloo on loopback. The test plays backward: it writes
// gradients and calls ready().
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "tests/trainer/group_rank.h"
#include "trainer/gradients/gradient_reducer.h"
#include "trainer/precision/gradient_scaler.h"
#include "trainer/precision/master_weights.h"

namespace ddprun::trainer {
namespace {

using test::Ends;
using test::expects_error;
using test::GroupRank;
using test::run_ranks;

constexpr float kInfinite = std::numeric_limits<float>::infinity();

// Two layers of a 16-bit type and one that is float32.
template <class T>
struct Model {
    std::vector<T> a = std::vector<T>(700, T(1.0f)), b = std::vector<T>(5, T(1.0f));
    std::vector<float> norm = std::vector<float>(9, 1.0f);
    std::vector<NamedBuffer> parameters() {
        return {{"a", buffer_of(std::span(a))},
                {"b", buffer_of(std::span(b))},
                {"norm", buffer_of(std::span(norm))}};
    }
};

void fill(const Buffer& buffer, float value) {
    for (std::size_t i = 0; i < buffer.count; ++i) switch (buffer.type) {
            case DataType::bfloat16:
                static_cast<BFloat16*>(buffer.data)[i] = BFloat16(value);
                break;
            case DataType::float16:
                static_cast<Half*>(buffer.data)[i] = static_cast<Half>(value);
                break;
            default:
                static_cast<float*>(buffer.data)[i] = value;
        }
}

float first_of(const Buffer& buffer) {
    switch (buffer.type) {
        case DataType::bfloat16:
            return *static_cast<BFloat16*>(buffer.data);
        case DataType::float16:
            return static_cast<float>(*static_cast<Half*>(buffer.data));
        default:
            return *static_cast<float*>(buffer.data);
    }
}

// A whole backward pass in which each gradient has one value everywhere.
Result<void> backward(GradientReducer& reducer, float value) {
    if (auto done = reducer.zero(); !done) return done;
    for (std::size_t i = reducer.gradients().size(); i-- > 0;) {
        fill(reducer.gradient(i), value);
        if (auto done = reducer.ready(i); !done) return done;
    }
    return reducer.finish();
}

// Plain SGD on the master weights.
void descend(const MasterWeights& masters, float rate) {
    for (std::size_t i = 0; i < masters.weights().size(); ++i) {
        const Buffer &w = masters.weights()[i].buffer, &g = masters.gradients()[i].buffer;
        for (std::size_t k = 0; k < w.count; ++k)
            static_cast<float*>(w.data)[k] -= rate * static_cast<float*>(g.data)[k];
    }
}

// 200 steps of 2^-10 from 1 on: 0.8046875 in float32. Two bfloat16 below 1 are 2^-8 apart. So each
// step alone would be rounded away, and without master weights nothing would ever change.
TEST(MasterWeights, KeepWhat16BitsLose) {
    auto ends = run_ranks(2, [](const Context& context) {
        GroupRank me(context);
        Model<BFloat16> model;
        auto reducer = GradientReducer::make(*me.group, model.parameters()).value();
        auto masters =
            MasterWeights::make(Memory::host, model.parameters(), reducer->gradients()).value();
        for (int step = 0; step < 200; ++step) {
            // The mean over both ranks is 1, which bfloat16 has.
            if (!backward(*reducer, context.is_first() ? 0.5f : 1.5f)) return 1;
            if (!masters.take_gradients()) return 2;
            descend(masters, 1.0f / 1024);
            if (!masters.publish()) return 3;
        }
        for (const auto& [name, weight] : masters.weights())
            if (first_of(weight) != 1 - 200.0f / 1024) return 4;
        const auto parameters = model.parameters();
        if (first_of(parameters[0].buffer) != 0.8046875f) return 5;
        // A parameter that is float32 is its own master.
        if (masters.weights()[2].buffer.data != model.norm.data()) return 6;
        if (masters.state().size() != 2 || masters.state()[1].name != "master.b") return 7;
        return verify_equal(*me.group, parameters) ? 0 : 8;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// What a 16-bit model sends and clips is 16-bit all through: buckets, sums, norm.
TEST(MixedPrecision, BucketsNormAndClippingAre16Bit) {
    auto ends = run_ranks(3, [](const Context& context) {
        GroupRank me(context);
        std::vector<BFloat16> a(400, BFloat16(0)), b(500, BFloat16(0));
        auto reducer = GradientReducer::make(*me.group, {{"a", buffer_of(std::span(a))},
                                                         {"b", buffer_of(std::span(b))}})
                           .value();
        for (const auto& bucket : reducer->plan().buckets)
            if (bucket.type != DataType::bfloat16) return 1;
        // The means of 1, 2 and 3. All sums on the way are bfloat16 numbers.
        if (!backward(*reducer, static_cast<float>(context.rank.value + 1))) return 2;
        if (first_of(reducer->gradient(0)) != 2 || first_of(reducer->gradient(1)) != 2) return 3;
        // 900 values of 2: the norm is 60.
        const auto norm = reducer->clip(15);
        if (!norm || std::abs(*norm - 60) > 1e-9) return 4;
        return first_of(reducer->gradient(1)) == 0.5f ? 0 : 5;
    });
    EXPECT_EQ(ends, Ends({0, 0, 0}));
}

// One rank's infinity makes all ranks skip the step, with the same scale afterwards. Also a NaN
// (the sum of two ranks' infinities of either sign). Then all go on.
TEST(GradientScaler, AllRanksSkipWhenOneOverflows) {
    auto ends = run_ranks(3, [](const Context& context) {
        GroupRank me(context);
        Model<Half> model;
        auto reducer = GradientReducer::make(*me.group, model.parameters()).value();
        auto masters =
            MasterWeights::make(Memory::host, model.parameters(), reducer->gradients()).value();
        auto scaler = GradientScaler::make(*me.group, {{.initial = 1024}}).value();
        const int rank = context.rank.value;
        for (int step = 0; step < 4; ++step) {
            // 3e-6 has two bits in float16. With the scale it has all eleven.
            float value = static_cast<float>(3e-6 * scaler.scale());
            if (step == 1 && rank == 2) value = kInfinite;
            if (step == 2 && rank != 1) value = rank ? kInfinite : -kInfinite;
            if (!backward(*reducer, value) || !masters.take_gradients()) return 1;
            const auto go = scaler.unscale(masters.gradients());
            if (!go || *go != (step == 0 || step == 3)) return 2 + step;
            if (!*go) continue;
            if (std::abs(first_of(masters.gradients()[0].buffer) - 3e-6f) > 3e-9f) return 6;
            descend(masters, 1000);
            if (!masters.publish()) return 7;
        }
        if (scaler.scale() != 256 || scaler.state().skipped() != 2) return 8;
        if (std::abs(first_of(masters.weights()[0].buffer) - 0.994f) > 1e-4f) return 9;
        auto all = model.parameters();
        for (const auto& master : masters.state()) all.push_back(master);
        return verify_equal(*me.group, all) ? 0 : 10;
    });
    EXPECT_EQ(ends, Ends({0, 0, 0}));
}

// Gradients that each rank has for itself: only rank 1 sees the NaN, and is asked by the others.
TEST(GradientScaler, AsksTheOtherRanksAboutTheirShards) {
    auto ends = run_ranks(2, [](const Context& context) {
        GroupRank me(context);
        std::vector<float> mine(10, 8.0f);
        if (!context.is_first()) mine[7] = std::nanf("");
        const std::vector<NamedBuffer> gradients{{"shard", buffer_of(std::span(mine))}};
        auto scaler = GradientScaler::make(*me.group, {{.initial = 4}, true}).value();
        const auto go = scaler.unscale(gradients);
        if (!go || *go || scaler.scale() != 2 || mine[0] != 8) return 1;
        mine[7] = 8;
        const auto next = scaler.unscale(gradients);
        return next && *next && mine[0] == 4 && mine[7] == 4 ? 0 : 2;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// A loss that is never finite ends the training, with the name of the gradient.
// A rank that has resumed from other words would divide by another scale, and drift apart.
TEST(GradientScaler, NamesTheRankWithAnotherScale) {
    auto ends = run_ranks(2, [](const Context& context) {
        GroupRank me(context);
        auto scaler = GradientScaler::make(*me.group).value();
        std::vector<float> values{1, 2};
        const std::vector<NamedBuffer> gradients{{"w", buffer_of(std::span(values))}};
        if (!scaler.unscale(gradients)) return 1;
        auto words = scaler.state().words();
        if (!context.is_first()) words["loss_scale"] = "1024";
        if (!scaler.state().resume(words)) return 2;
        const auto done = scaler.unscale(gradients);
        return expects_error(done ? Result<void>() : done.error(),
                             "in step 2 of this scaler \"loss_scale\" is not the same on rank 1 as "
                             "on rank 0 (rank 0: 65536, rank 1: 1024)");
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

TEST(GradientScaler, NamesTheGradientThatIsNeverFinite) {
    GroupRank alone{Context()};
    std::vector<float> good(3, 1.0f), bad(3, kInfinite);
    const std::vector<NamedBuffer> gradients{{"good", buffer_of(std::span(good))},
                                             {"bad", buffer_of(std::span(bad))}};
    auto scaler = GradientScaler::make(*alone.group, {{.initial = 2, .least = 1}}).value();
    ASSERT_TRUE(scaler.unscale(gradients));
    const auto done = scaler.unscale(gradients);
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error().sentence(),
                testing::HasSubstr("the first is \"bad\" of rank 0: gradients are not finite"));
}

// Divided in float16 they would lose what the scale has saved.
TEST(GradientScaler, RefusesToUnscaleInFloat16) {
    GroupRank alone{Context()};
    std::vector<Half> half(3, Half(1.0f));
    auto scaler = GradientScaler::make(*alone.group).value();
    const auto done = scaler.unscale(std::vector<NamedBuffer>{{"w", buffer_of(std::span(half))}});
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error().sentence(), testing::HasSubstr("\"w\" is F16"));
}

TEST(MasterWeights, RefusesListsThatDoNotFit) {
    Model<Half> model, other;
    other.b.resize(6);
    const auto longer = MasterWeights::make(Memory::host, model.parameters(), {});
    EXPECT_EQ(longer.error().code(), ErrorCode::usage);
    const auto unequal = MasterWeights::make(Memory::host, model.parameters(), other.parameters());
    ASSERT_FALSE(unequal);
    EXPECT_THAT(unequal.error().sentence(),
                testing::HasSubstr("\"b\" has 5 F16, and its gradient \"b\" 6 F16"));
}

}  // namespace
}  // namespace ddprun::trainer
