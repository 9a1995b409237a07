// Gradients averaged over ranks: real processes with Gloo on loopback. The test plays backward: it
// adds numbers to gradients and calls ready(), the last layer first.
#include "trainer/gradients/gradient_reducer.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <random>

#include "tests/trainer/group_rank.h"

namespace ddprun::trainer {
namespace {

using test::Ends;
using test::expects_error;
using test::GroupRank;
using test::run_ranks;

// Three layers of unequal size in host memory.
struct Model {
    std::vector<std::vector<float>> values{std::vector<float>(3000, 1.0f),
                                           std::vector<float>(10, 2.0f),
                                           std::vector<float>(500, 3.0f)};
    std::vector<NamedBuffer> parameters() {
        std::vector<NamedBuffer> named;
        for (std::size_t i = 0; i < values.size(); ++i)
            named.push_back({"layer" + std::to_string(i), buffer_of(std::span(values[i]))});
        return named;
    }
};

std::span<float> floats(const Buffer& buffer) {
    return {static_cast<float*>(buffer.data), buffer.count};
}

// What backward does for one layer: it adds, since gradients accumulate.
void add(GradientReducer& reducer, std::size_t parameter, float what) {
    for (float& g : floats(reducer.gradient(parameter))) g += what;
}

// Every element of the gradient. Prints the first one that is wrong.
bool all_are(const GradientReducer& reducer, std::size_t parameter, float expected, float within) {
    for (float g : floats(reducer.gradient(parameter)))
        if (std::abs(g - expected) > within)
            return std::fprintf(stderr, "%g instead of %g\n", g, expected) < 0;
    return true;
}

// Small buckets, so that this small model has several. Layer 2 (2000 bytes) fills the first one.
ReducerOptions small() {
    ReducerOptions options;
    options.first_bucket_bytes = 1000;
    options.bucket_bytes = 4000;
    return options;
}

// Rank r adds r + 1 in each of three micro-steps, and only the last one synchronizes. The sums are
// 3, 6 and 9, and their mean is 6. Three steps, so that zero() and the buckets of an old step are
// tested too.
TEST(GradientReducer, AveragesWhatWasAccumulated) {
    auto ends = run_ranks(3, [](const Context& context) {
        GroupRank me(context);
        Model model;
        auto reducer = GradientReducer::make(*me.group, model.parameters(), small()).value();
        if (reducer->plan().buckets.size() < 2) return 1;
        for (int step = 0; step < 3; ++step) {
            if (!reducer->zero()) return 2;
            for (int micro = 0; micro < 3; ++micro) {
                std::optional<GradientReducer::NoSync> quiet;
                // ready() does nothing in the first two: only the sum of all three travels.
                if (micro < 2) quiet.emplace(*reducer);
                for (std::size_t i = 3; i-- > 0;) {
                    add(*reducer, i, static_cast<float>(context.rank.value + 1));
                    if (!reducer->ready(i)) return 3;
                }
            }
            if (!reducer->finish()) return 4;
            for (std::size_t i = 0; i < 3; ++i)
                if (!all_are(*reducer, i, 6.0f, 0)) return 5;
            const auto& times = reducer->times();
            // The waiting is a part of the communication.
            if (times.communication.count() <= 0 || times.waited > times.communication) return 6;
        }
        return 0;
    });
    EXPECT_EQ(ends, Ends({0, 0, 0}));
}

// The hook halves the bytes. bfloat16 has 8 bits of precision, hence the bound of 0.01 around 1.
TEST(GradientReducer, CompressesToBFloat16) {
    auto ends = run_ranks(2, [](const Context& context) {
        GroupRank me(context);
        Model model;
        auto options = small();
        options.hook = std::make_shared<Bfloat16Hook>();
        auto reducer = GradientReducer::make(*me.group, model.parameters(), options).value();
        for (std::size_t i = 3; i-- > 0;) {
            add(*reducer, i, context.is_first() ? 0.3f : 1.7f);
            if (!reducer->ready(i)) return 1;
        }
        return reducer->finish() && all_are(*reducer, 0, 1.0f, 0.01f) ? 0 : 2;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// A hook as a program may write it: the sum goes to rank 0 and from there to all. These are two
// operations, and the division follows in end().
struct ByWayOfTheFirst final : CommunicationHook {
    std::size_t buckets = 0, ended = 0;
    int ranks = 0;

    Result<void> prepare(ProcessGroup& group, const std::vector<Buffer>& all) override {
        buckets = all.size();
        ranks = group.size();
        return {};
    }
    Result<Work> begin(ProcessGroup& group, std::size_t, const Buffer& bucket, GpuStream) override {
        (void)group.begin(Operation::reduce(bucket));
        return group.begin(Operation::broadcast(bucket, 0));
    }
    Result<void> end(std::size_t index, const Buffer& bucket, GpuStream) override {
        if (index != ended++) return Error(ErrorCode::usage, "buckets end in another order");
        for (float& value : floats(bucket)) value /= static_cast<float>(ranks);
        return {};
    }
};

// A program replaces the all-reduce by its own way. Each bucket passes begin() and end() once, and
// end() comes in the order of the buckets.
TEST(GradientReducer, SendsAsItsHookDoes) {
    auto ends = run_ranks(3, [](const Context& context) {
        GroupRank me(context);
        Model model;
        auto options = small();
        const auto hook = std::make_shared<ByWayOfTheFirst>();
        options.hook = hook;
        auto reducer = GradientReducer::make(*me.group, model.parameters(), options).value();
        for (std::size_t i = 3; i-- > 0;) {
            // 0, 3 and 6: the mean is 3, which float adds exactly.
            add(*reducer, i, static_cast<float>(3 * context.rank.value));
            if (!reducer->ready(i)) return 1;
        }
        if (!reducer->finish()) return 2;
        for (std::size_t i = 0; i < 3; ++i)
            if (!all_are(*reducer, i, 3.0f, 0)) return 3;
        return hook->buckets == reducer->plan().buckets.size() && hook->ended == hook->buckets ? 0
                                                                                               : 4;
    });
    EXPECT_EQ(ends, Ends({0, 0, 0}));
}

// A hook has memory for the buckets of one reducer. A second reducer is refused, as often as it
// tries, until the first one is gone.
TEST(GradientReducer, SharesItsHookWithNoOther) {
    Context alone;
    GroupRank me(alone);
    Model model;
    auto options = small();
    options.hook = std::make_shared<Bfloat16Hook>();
    auto first = GradientReducer::make(*me.group, model.parameters(), options).value();
    // Twice: a refusal must not count as a use, or as the end of one.
    for (int i = 0; i < 2; ++i) {
        const auto second = GradientReducer::make(*me.group, model.parameters(), options);
        ASSERT_FALSE(second);
        EXPECT_EQ(second.error().code(), ErrorCode::usage);
    }
    first.reset();
    EXPECT_TRUE(GradientReducer::make(*me.group, model.parameters(), options));
}

// The error of a program's own hook reaches the program unchanged.
TEST(GradientReducer, SaysWhyAHookFailed) {
    struct Fails final : CommunicationHook {
        Result<Work> begin(ProcessGroup&, std::size_t index, const Buffer&, GpuStream) override {
            return Error(ErrorCode::unavailable, "no way for bucket " + std::to_string(index));
        }
    };
    Context alone;
    GroupRank me(alone);
    Model model;
    auto options = small();
    options.hook = std::make_shared<Fails>();
    auto reducer = GradientReducer::make(*me.group, model.parameters(), options).value();
    const auto done = reducer->ready(2);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().sentence(), "no way for bucket 0");
}

// Layer 1 is used by rank 0 only, layer 2 by no rank (a model with branches). Without find_unused
// the ranks would wait for gradients that never come. A missing gradient counts as zero, so the
// mean of layer 1 is half of 4.
TEST(GradientReducer, FindsUnusedParameters) {
    auto ends = run_ranks(2, [](const Context& context) {
        GroupRank me(context);
        Model model;
        auto options = small();
        options.find_unused = true;
        auto reducer = GradientReducer::make(*me.group, model.parameters(), options).value();
        // Rank 0 reaches layers 1 and 0, rank 1 only layer 0.
        for (std::size_t i = context.is_first() ? 2 : 1; i-- > 0;) {
            add(*reducer, i, 4);
            if (!reducer->ready(i)) return 1;
        }
        if (!reducer->finish()) return 2;
        if (!reducer->used(0) || !reducer->used(1) || reducer->used(2)) return 3;
        return all_are(*reducer, 0, 4, 0) && all_are(*reducer, 1, 2, 0) &&
                       all_are(*reducer, 2, 0, 0)
                   ? 0
                   : 4;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// Without find_unused a forgotten gradient is a mistake of the program. It is named, because the
// alternative is a job that hangs. So is a gradient that is ready twice.
TEST(GradientReducer, NamesAForgottenGradient) {
    Context alone;
    GroupRank me(alone);
    Model model;
    auto reducer = GradientReducer::make(*me.group, model.parameters(), small()).value();
    EXPECT_TRUE(reducer->ready(2));
    EXPECT_FALSE(reducer->ready(2));
    auto done = reducer->finish();
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error().sentence(),
                testing::HasSubstr("2 parameters, the first is \"layer0\""));
}

// The norm goes over all buckets: 3,510 elements of 2. Below the limit nothing changes. Above it
// all gradients are scaled, and the norm is then the limit.
TEST(GradientReducer, ClipsByTheGlobalNorm) {
    Context alone;
    GroupRank me(alone);
    Model model;
    auto reducer = GradientReducer::make(*me.group, model.parameters(), small()).value();
    for (std::size_t i = 0; i < 3; ++i) add(*reducer, i, 2.0f);
    const double norm = 2 * std::sqrt(3510.0);
    EXPECT_NEAR(reducer->clip(1000).value(), norm, 1e-9);
    EXPECT_NEAR(reducer->clip(1).value(), norm, 1e-9);
    EXPECT_NEAR(reducer->clip(1).value(), 1, 1e-6);
}

// Finite gradients whose squares are too large for a double. They became 0.
TEST(GradientReducer, ClipsLargeGradients) {
    Context alone;
    GroupRank me(alone);
    std::vector<double> large(2), small(3);
    ReducerOptions options;
    options.find_not_finite = true;
    auto reducer = GradientReducer::make(*me.group,
                                         {{"large", buffer_of(std::span(large))},
                                          {"small", buffer_of(std::span(small))}},
                                         options)
                       .value();
    const auto gradient = [&](std::size_t i) {
        return static_cast<double*>(reducer->gradient(i).data);
    };
    gradient(0)[0] = 3e200;
    gradient(0)[1] = 4e200;
    gradient(1)[0] = 5e199;
    ASSERT_TRUE(reducer->ready(1) && reducer->ready(0));
    const auto done = reducer->finish();
    ASSERT_TRUE(done) << done.error();
    EXPECT_NEAR(reducer->clip(1).value() / 5.024937810560445e200, 1, 1e-12);
    EXPECT_NEAR(gradient(0)[0], 3 / 5.024937810560445, 1e-12);
    EXPECT_NEAR(gradient(1)[0], 0.5 / 5.024937810560445, 1e-12);
    EXPECT_NEAR(reducer->clip(1).value(), 1, 1e-12);
    // A norm that is really infinite is returned, and nothing is lost.
    gradient(0)[0] = std::numeric_limits<double>::infinity();
    EXPECT_EQ(reducer->clip(1).value(), std::numeric_limits<double>::infinity());
    EXPECT_NEAR(gradient(1)[0], 0.5 / 5.024937810560445, 1e-12);
}

TEST(GradientReducer, RefusesCallsThatMakeNoSense) {
    Context alone;
    GroupRank me(alone);
    Model model;
    auto reducer = GradientReducer::make(*me.group, model.parameters(), small()).value();
    add(*reducer, 0, 2);
    for (const double most : {-1.0, std::numeric_limits<double>::quiet_NaN()})
        EXPECT_EQ(expects_error(reducer->begin_clip(most), "are clipped to a norm of 0 or more"),
                  0);
    EXPECT_EQ(expects_error(reducer->average_over(0), "at least one rank, not over 0"), 0);
    {
        const auto quiet = reducer->no_sync();
        EXPECT_EQ(expects_error(reducer->finish(), "end its scope before the last backward"), 0);
    }
    EXPECT_TRUE(all_are(*reducer, 0, 2, 0));
}

// A step is given up on all ranks, before and after buckets are on their way, and also by an error.
// zero() begins again, and nothing of that step is left.
TEST(GradientReducer, BeginsAgainAfterAStepThatWasGivenUp) {
    auto ends = run_ranks(2, [](const Context& context) {
        GroupRank me(context);
        Model model;
        auto reducer = GradientReducer::make(*me.group, model.parameters(), small()).value();
        for (std::size_t given_up = 1; given_up < 3; ++given_up) {
            if (!reducer->zero()) return 1;
            for (std::size_t i = 3; i-- > given_up;) {
                add(*reducer, i, 100);
                if (!reducer->ready(i)) return 2;
            }
            if (given_up == 1 && reducer->finish()) return 3;
            if (!reducer->zero()) return 4;
            for (std::size_t i = 3; i-- > 0;) {
                add(*reducer, i, static_cast<float>(context.rank.value + 1));
                if (!reducer->ready(i)) return 5;
            }
            if (!reducer->finish()) return 6;
            for (std::size_t i = 0; i < 3; ++i)
                if (!all_are(*reducer, i, 1.5f, 0)) return 7;
        }
        return reducer->steps() == 2 ? 0 : 8;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// Rank 1 gives a step up that rank 0 finishes: the next call of both names it.
TEST(GradientReducer, RefusesAStepThatOneRankGaveUp) {
    auto ends = run_ranks(2, [](const Context& context) {
        GroupRank me(context, std::chrono::seconds(60));
        Model model;
        auto reducer = GradientReducer::make(*me.group, model.parameters(), small()).value();
        for (int step = 0; step < 2; ++step) {
            auto done = reducer->zero();
            for (std::size_t i = 3; i-- > 0 && done;) done = reducer->ready(i);
            if (done && context.rank.value == 0) done = reducer->finish();
            if (!done) return expects_error(done, "given-up step");
        }
        return 1;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// Ranks begin with different numbers, for example after other random seeds. Rank 0's are everywhere
// afterwards, for parameters and for other buffers. Otherwise each rank would train another model,
// and nobody would notice. Shapes that differ are refused with parameter and rank.
TEST(GradientReducer, BeginsWithTheParametersOfRankZero) {
    auto ends = run_ranks(3, [](const Context& context) {
        GroupRank me(context);
        Model model;
        for (auto& v : model.values[2]) v += static_cast<float>(context.rank.value);
        // A buffer that is no parameter, such as a running statistic.
        std::vector<std::int64_t> counted(7, 5 + context.rank.value);
        auto reducer = GradientReducer::make(*me.group, model.parameters(), small(),
                                             {{"counted", buffer_of(std::span(counted))}});
        if (!reducer || model.values[2][499] != 3.0f || counted[6] != 5) return 1;
        // A parameter that drifts on one rank is found, however small the difference.
        if (context.rank.value == 2) model.values[0][7] += 1e-6f;
        int code = expects_error(verify_equal(*me.group, model.parameters()),
                                 "\"layer0\" is not the same on rank 2 as on rank 0");
        if (code) return code;
        Model other;
        if (context.rank.value == 1) other.values[1].resize(11);
        auto made = GradientReducer::make(*me.group, other.parameters(), small());
        return made ? 2 : expects_error(made.error(), "\"layer1\" is not the same on rank 1 as on");
    });
    EXPECT_EQ(ends, Ends({0, 0, 0}));
}

// Thousands of small tensors travel in a few broadcasts, with a large one and an empty one between
// them: the next call has a low number. (16 MB of small ones need more than one buffer.)
TEST(GradientReducer, BeginsWithManyTensors) {
    auto ends = run_ranks(2, [](const Context& context) {
        GroupRank me(context);
        std::vector<std::vector<float>> values;
        std::vector<NamedBuffer> parameters;
        for (std::size_t i = 0; i < 3000; ++i)
            values.emplace_back(i == 1000   ? 200'000
                                : i == 2000 ? 0
                                            : 1000 + i % 700,
                                static_cast<float>(i + 5000 * context.rank.value));
        for (std::size_t i = 0; i < values.size(); ++i)
            parameters.push_back({"t" + std::to_string(i), buffer_of(std::span(values[i]))});
        auto reducer = GradientReducer::make(*me.group, parameters);
        if (!reducer) return expects_error(reducer.error(), "no error");
        for (std::size_t i = 0; i < values.size(); ++i)
            for (const float value : values[i])
                if (value != static_cast<float>(i)) return 1;
        std::vector<float> few(static_cast<std::size_t>(context.rank.value) + 1);
        return expects_error(me.group->all_reduce(buffer_of(std::span(few))),
                             "all_reduce number 7 of 1 F32");
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// Rank 2 computes an infinity in its second step. The reduction spreads it to all ranks, so the
// result does not show where it came from. All ranks fail in this step, with parameter and rank;
// the step before succeeds.
TEST(GradientReducer, NamesWhereAnInfinityCameFrom) {
    auto ends = run_ranks(3, [](const Context& context) {
        GroupRank me(context);
        Model model;
        auto options = small();
        options.find_not_finite = true;
        auto reducer = GradientReducer::make(*me.group, model.parameters(), options).value();
        for (int step = 0; step < 2; ++step) {
            if (!reducer->zero()) return 1;
            for (std::size_t i = 3; i-- > 0;) {
                add(*reducer, i, 1);
                if (step == 1 && i == 1 && context.rank.value == 2)
                    floats(reducer->gradient(1))[3] = std::numeric_limits<float>::infinity();
                if (!reducer->ready(i)) return 2;
            }
            auto done = reducer->finish();
            if (step == 0 && !done) return 3;
            if (step == 1)
                return expects_error(done, "\"layer1\" is not a finite number on rank 2");
        }
        return 4;
    });
    EXPECT_EQ(ends, Ends({0, 0, 0}));
}

// A parameter that one rank alone has used, in a pass under no_sync(): its gradient travels, so
// every optimizer has to make the step. After a step the count begins again.
TEST(GradientReducer, CountsWhatWasUsedWithoutSync) {
    auto ends = run_ranks(2, [](const Context& context) {
        GroupRank me(context);
        Model model;
        auto options = small();
        options.find_unused = true;
        auto reducer = GradientReducer::make(*me.group, model.parameters(), options).value();
        for (int step = 0; step < 2; ++step) {
            if (!reducer->zero()) return 1;
            if (step == 0) {
                const auto quiet = reducer->no_sync();
                if (context.is_first()) add(*reducer, 0, 4);
                if (context.is_first() && !reducer->ready(0)) return 2;
            }
            add(*reducer, 1, 1);
            if (!reducer->ready(1) || !reducer->finish()) return 3;
            if (reducer->used(0) != (step == 0) || !reducer->used(1) || reducer->used(2)) return 4;
            if (!all_are(*reducer, 0, step == 0 ? 2.0f : 0.0f, 0)) return 5;
        }
        return 0;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// Trains for some steps with an update that is the same on all ranks, but for what `drift` does
// before the step of this number. Returns the error of finish().
Result<void> train(GroupRank& me, const ReplicaChecks& checks, int steps,
                   const std::function<void(int step, Model&)>& drift) {
    Model model;
    auto options = small();
    options.verify_replicas = checks;
    auto reducer = GradientReducer::make(*me.group, model.parameters(), options).value();
    for (int step = 1; step <= steps; ++step) {
        if (auto done = reducer->zero(); !done) return done;
        drift(step, model);
        for (std::size_t i = 3; i-- > 0;) {
            add(*reducer, i, static_cast<float>(me.group->rank()));
            if (auto done = reducer->ready(i); !done) return done;
        }
        if (auto done = reducer->finish(); !done) return done;
        for (std::size_t i = 0; i < 3; ++i)
            for (std::size_t k = 0; k < model.values[i].size(); ++k)
                model.values[i][k] -= 0.01f * floats(reducer->gradient(i))[k];
    }
    return {};
}

// One bit of one number of one rank is another one, many times: in whatever tensor, place, rank
// and step of the first ten. It is named in that step, on all ranks, and the group stays as it was;
// a rank 0 that is alone with its number is the one that is named.
TEST(GradientReducer, NamesTheReplicaThatDrifts) {
    auto ends = run_ranks(3, [](const Context& context) {
        GroupRank me(context);
        const int rounds = std::getenv("DDPRUN_LONG") ? 100 : 25;
        std::mt19937 draw(1);  // the same on all ranks
        for (int round = 0; round < rounds; ++round) {
            const int odd = static_cast<int>(draw() % 3),
                      drifts_in = 1 + static_cast<int>(draw() % 10);
            const std::size_t layer = draw() % 3, place = draw();
            const bool up = draw() % 2;
            const auto drift = [&](int step, Model& model) {
                auto& values = model.values[layer];
                auto& number = values[place % values.size()];
                if (context.rank.value == odd && step == drifts_in)
                    number = std::nextafter(number, up ? 9.0f : -9.0f);
            };
            const int code = expects_error(
                train(me, {}, 10, drift),
                "in step " + std::to_string(drifts_in) + " of this reducer the content of \"layer" +
                    std::to_string(layer) + "\" is not the same on rank " + std::to_string(odd) +
                    " as on rank " + (odd ? "0" : "1"));
            if (code) return std::fprintf(stderr, "round %d\n", round), code;
        }
        return 0;
    });
    EXPECT_EQ(ends, Ends({0, 0, 0}));
}

// After the first steps only on request. And no false alarm.
TEST(GradientReducer, ComparesReplicasWhenItIsDue) {
    auto ends = run_ranks(
        2,
        [](const Context& context) {
            GroupRank me(context);
            const auto drift = [&](int step, Model& model) {
                if (step == 13 && !context.is_first()) model.values[1][0] += 1;
            };
            if (!train(me, {}, 30, drift)) return 1;
            if (!train(me, {0, 0}, 30, [&](int, Model& model) {
                    model.values[1][0] += static_cast<float>(me.group->rank());
                }))
                return 2;
            const int code =
                expects_error(train(me, {2, 8}, 30, drift), "in step 16 of this reducer");
            if (code) return code;
            const int steps = std::getenv("DDPRUN_LONG") ? 10'000 : 500;
            return train(me, {0, 1}, steps, [](int, Model&) {}) ? 0 : 3;
        },
        std::chrono::seconds(120));
    EXPECT_EQ(ends, Ends({0, 0}));
}

// The same as a call of its own, before a reduction. Two more agreements: the mean over ranks
// counts samples (1, 2 and 3 of them), and if one rank wants to stop, all learn it.
TEST(Agreement, FindsNumbersThatAreNone) {
    auto ends = run_ranks(3, [](const Context& context) {
        GroupRank me(context);
        Model model;
        auto reducer = GradientReducer::make(*me.group, model.parameters(), small()).value();
        if (!verify_finite(*me.group, reducer->gradients())) return 1;
        if (context.rank.value == 2)
            floats(reducer->gradient(1))[3] = std::numeric_limits<float>::quiet_NaN();
        const int code = expects_error(verify_finite(*me.group, reducer->gradients()),
                                       "\"layer1\" is not a finite number on rank 2");
        if (code) return code;
        WeightedMean mean;
        mean.add(context.rank.value, context.rank.value + 1);
        if (mean_over_ranks(*me.group, mean).value().mean() != 8.0 / 6.0) return 2;
        if (!any_rank(*me.group, context.rank.value == 1).value()) return 3;
        return any_rank(*me.group, false).value() ? 4 : 0;
    });
    EXPECT_EQ(ends, Ends({0, 0, 0}));
}

}  // namespace
}  // namespace ddprun::trainer
