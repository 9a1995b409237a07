// Ranks that run out of samples: real processes with Gloo on loopback. The gradient of rank r is
// r + 1 everywhere, so each sum tells who took part.
#include "trainer/gradients/join.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <cmath>

#include "tests/trainer/group_rank.h"

namespace ddprun::trainer {
namespace {

using test::Ends;
using test::expects_error;
using test::GroupRank;
using test::run_ranks;

// Two layers in buckets of their own, trained by SGD with momentum.
struct Training {
    Training(ProcessGroup& group, const ReducerOptions& more = {}) : mine(group.rank() + 1.0f) {
        ReducerOptions options = more;
        options.first_bucket_bytes = options.bucket_bytes = 64;
        reducer = GradientReducer::make(group, parameters(), options).value();
    }

    std::vector<NamedBuffer> parameters() {
        return {{"a", buffer_of(std::span(values).first(30))},
                {"b", buffer_of(std::span(values).last(10))}};
    }
    std::vector<NamedBuffer> state() {
        auto all = parameters();
        all.push_back({"momentum", buffer_of(std::span(momenta))});
        return all;
    }

    // A step with one sample.
    Result<void> step(float rate = 0.125f) {
        if (auto done = reducer->zero(); !done) return done;
        for (std::size_t i : {1, 0}) {
            const Buffer gradient = reducer->gradient(i);
            for (std::size_t k = 0; k < gradient.count; ++k)
                static_cast<float*>(gradient.data)[k] += mine;
            if (auto done = reducer->ready(i); !done) return done;
        }
        if (auto done = reducer->finish(); !done) return done;
        std::size_t at = 0;
        for (const auto& [name, gradient] : reducer->gradients())
            for (std::size_t k = 0; k < gradient.count; ++k, ++at) {
                momenta[at] = 0.5f * momenta[at] + static_cast<float*>(gradient.data)[k];
                values[at] -= rate * momenta[at];
            }
        return {};
    }

    const float mine;
    std::vector<float> values = std::vector<float>(40, 1), momenta = std::vector<float>(40);
    std::unique_ptr<GradientReducer> reducer;
};

// What the parameters are after steps with these mean gradients.
float trained(std::initializer_list<float> gradients) {
    float value = 1, momentum = 0;
    for (float gradient : gradients) {
        momentum = 0.5f * momentum + gradient;
        value -= 0.125f * momentum;
    }
    return value;
}

// Ranks 0, 1 and 2 have 1, 4 and 2 samples. The sums of the four steps are 6, 5, 2 and 2, of 3, 2,
// 1 and 1 ranks. In the end all have the bits of rank 1.
int ends_unevenly(const Context& context, bool by_all) {
    GroupRank me(context);
    Training training(*me.group);
    Join join(*me.group, {.divide_by_initial_world_size = by_all});
    join.add(*training.reducer, training.state());
    const int samples[] = {1, 4, 2}, active[] = {3, 2, 1, 1};
    for (int i = 0; i < samples[context.rank.value]; ++i) {
        const auto with_samples = join.step();
        if (!with_samples || *with_samples != active[i]) return 1;
        if (!training.step()) return 2;
    }
    const auto end = join.finish();
    if (!end || end->last != 1 || end->steps != 4) return 3;
    const float expected =
        by_all ? trained({2, 5 / 3.0f, 2 / 3.0f, 2 / 3.0f}) : trained({2, 2.5f, 2, 2});
    for (float value : training.values)
        if (std::abs(value - expected) > 1e-6f) return 4;
    if (!verify_equal(*me.group, training.state())) return 5;
    // The reducer averages over all ranks again, also in a next epoch.
    Join next(*me.group, {.divide_by_initial_world_size = by_all});
    next.add(*training.reducer, training.state());
    if (!next.step() || !training.step()) return 6;
    if (static_cast<float*>(training.reducer->gradient(0).data)[0] != 2) return 7;
    return next.finish() ? 0 : 8;
}

TEST(Join, TrainsOnWithTheRanksThatHaveSamples) {
    for (bool by_all : {true, false})
        EXPECT_EQ(run_ranks(3, [=](const Context& c) { return ends_unevenly(c, by_all); }),
                  Ends({0, 0, 0}))
            << by_all;
}

// Whatever else a step calls is shadowed, too, and what is no buffer comes from the last rank.
TEST(Join, ShadowsOtherCallsAndSharesOtherState) {
    auto ends = run_ranks(3, [](const Context& context) {
        GroupRank me(context);
        Training training(*me.group);
        Join join(*me.group);
        int shadowed = 0, from = -1;
        join.add(*training.reducer, training.state());
        join.add({[&]() -> Result<void> {
                      ++shadowed;
                      const auto any = any_rank(*me.group, false);
                      return any ? Result<void>() : any.error();
                  },
                  [&](int last) -> Result<void> {
                      from = last;
                      return {};
                  }});
        // Ranks 0 and 2 both train in the last step: the higher one gives its state.
        const int samples = context.rank.value == 1 ? 0 : 2;
        for (int i = 0; i < samples; ++i) {
            if (!join.step() || !training.step()) return 1;
            if (!any_rank(*me.group, false)) return 2;
        }
        if (!join.finish() || from != 2) return 3;
        return shadowed == 2 - samples ? 0 : 4;
    });
    EXPECT_EQ(ends, Ends({0, 0, 0}));
}

// A parameter that no rank with samples has used stays unused, and its optimizer leaves it alone.
TEST(Join, UsesNoParameterInAShadow) {
    auto ends = run_ranks(2, [](const Context& context) {
        GroupRank me(context);
        ReducerOptions options;
        options.find_unused = true;
        Training training(*me.group, options);
        Join join(*me.group);
        join.add(*training.reducer, training.state());
        if (context.is_first()) {
            auto& reducer = *training.reducer;
            if (!join.step() || !reducer.zero() || !reducer.ready(0) || !reducer.finish()) return 1;
        }
        if (!join.finish()) return 2;
        return training.reducer->used(0) && !training.reducer->used(1) ? 0 : 3;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// With throw_on_early_termination the shortest rank ends the epoch of all, in the same step. The
// group can be used afterwards.
TEST(Join, EndsOnAllRanksWhenToldTo) {
    auto ends = run_ranks(4, [](const Context& context) {
        GroupRank me(context);
        Training training(*me.group);
        Join join(*me.group, {.throw_on_early_termination = true});
        join.add(*training.reducer, training.state());
        const bool shortest = context.rank.value % 2;
        for (int i = 0; i < 2; ++i)
            if (!join.step() || !training.step()) return 1;
        const std::string sentence =
            "ranks 1 and 3 have no samples left after 2 steps, while others have";
        const auto end =
            shortest ? Result<void>(join.finish().error()) : Result<void>(join.step().error());
        if (end.error().code() != ErrorCode::refused) return 2;
        if (int wrong = expects_error(end, sentence)) return wrong;
        return verify_equal(*me.group, training.state()) && me.group->barrier() ? 0 : 3;
    });
    EXPECT_EQ(ends, Ends({0, 0, 0, 0}));
}

// Rank 2 is killed while rank 0 takes part without samples. Both others name it, at once.
TEST(Join, NamesARankThatDiesMeanwhile) {
    auto ends = run_ranks(3, [](const Context& context) {
        GroupRank me(context, std::chrono::seconds(60));
        Training training(*me.group);
        Join join(*me.group);
        join.add(*training.reducer, training.state());
        if (context.is_first()) return expects_error(join.finish().error(), "rank 2");
        for (int i = 0; i < 1000; ++i) {
            if (context.rank.value == 2 && i == 2) raise(SIGKILL);
            if (auto done = join.step(); !done) return expects_error(done.error(), "rank 2");
            if (auto done = training.step(); !done) return expects_error(done, "rank 2");
        }
        return 1;
    });
    EXPECT_EQ(ends, Ends({0, 0, -SIGKILL}));
}

// A step() that is missing or one too many is found on the rank that makes the mistake, before it
// waits for the others in a call that they do not make.
TEST(Join, NamesAStepThatIsMissingOrTooMany) {
    GroupRank alone{Context()};
    Training training(*alone.group);
    Join join(*alone.group);
    join.add(*training.reducer, training.state());
    ASSERT_TRUE(join.step());
    const auto twice = join.step();
    ASSERT_FALSE(twice);
    EXPECT_EQ(twice.error().code(), ErrorCode::usage);
    EXPECT_THAT(twice.error().sentence(), testing::HasSubstr("averaged 0 times in 1 step()s"));
    ASSERT_TRUE(training.step() && training.step());
    EXPECT_THAT(join.finish().error().sentence(),
                testing::HasSubstr("averaged 2 times in 1 step()s"));
}

TEST(Join, RefusesAStepAfterTheEnd) {
    GroupRank alone{Context()};
    Training training(*alone.group);
    Join join(*alone.group);
    join.add(*training.reducer, training.state());
    ASSERT_TRUE(join.step() && training.step() && join.finish());
    EXPECT_THAT(join.step().error().sentence(),
                testing::HasSubstr("has called finish() of its Join"));
    EXPECT_EQ(join.finish().error().code(), ErrorCode::usage);
}

// Rank 0 has no samples. Rank 1 calls something in its step that was not added: both calls are
// named, long before the time-out, although the ranks have made such calls many times before.
TEST(Join, NamesACallThatWasNotAdded) {
    auto ends = run_ranks(2, [](const Context& context) {
        GroupRank me(context, std::chrono::seconds(60));
        Training training(*me.group);
        Join join(*me.group);
        join.add(*training.reducer, training.state());
        for (int i = 0; i < 5; ++i) {
            if (!join.step() || !training.step()) return 1;
            if (!any_rank(*me.group, false)) return 2;
        }
        const std::string other = "for join";
        if (context.is_first()) return expects_error(join.finish().error(), other);
        if (!join.step() || !training.step()) return 3;
        return expects_error(any_rank(*me.group, false).error(), other);
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// Such a call of just the size of step() would be mixed up with it without a word.
TEST(Join, FindsACallOfItsOwnSize) {
    auto ends = run_ranks(2, [](const Context& context) {
        GroupRank me(context, std::chrono::seconds(60));
        Training training(*me.group);
        Join join(*me.group);
        join.add(*training.reducer, training.state());
        std::vector<double> three(3, 1.0);
        for (int i = 0; i < 5; ++i) {
            if (!join.step() || !training.step()) return 1;
            if (!me.group->all_reduce_values(three)) return 2;
        }
        if (context.is_first())
            return expects_error(join.finish().error(), "a call that was not added to it");
        if (!join.step() || !training.step()) return 3;
        // It is answered, and rank 0 then leaves.
        (void)me.group->all_reduce_values(three);
        return join.step() ? 4 : 0;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

}  // namespace
}  // namespace ddprun::trainer
