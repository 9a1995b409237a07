// An optimizer whose state is shared out, beside one that each rank has whole: the same bits. Real
// processes with Gloo on loopback. The test plays backward.
#include "trainer/optimizer/sharded_optimizer.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "tests/trainer/group_rank.h"
#include "trainer/gradients/join.h"
#include "trainer/snapshot/load/load_into.h"
#include "trainer/snapshot/load/load_slices.h"
#include "trainer/snapshot/save/snapshot_writer.h"

namespace ddprun::trainer {
namespace {

using std::chrono::seconds;
using test::Ends;
using test::expects_error;
using test::GroupRank;
using test::run_ranks;

// Layers of unequal size, one of them smaller than a rank's share of anything.
struct Model {
    Model() {
        for (std::size_t count : {3000, 1, 70, 501}) {
            values.emplace_back(count);
            for (std::size_t i = 0; i < count; ++i)
                values.back()[i] = 0.5f + 0.001f * static_cast<float>(i);
        }
    }
    std::vector<NamedBuffer> parameters() {
        std::vector<NamedBuffer> named;
        for (std::size_t i = 0; i < values.size(); ++i)
            named.push_back({"layer" + std::to_string(i), buffer_of(std::span(values[i]))});
        return named;
    }
    std::vector<std::vector<float>> values;
};

std::span<float> floats(const Buffer& buffer) {
    return {static_cast<float*>(buffer.data), buffer.count};
}

// Small buckets, so that the model has several.
ReducerOptions small(std::size_t shards = 1) {
    ReducerOptions options;
    options.first_bucket_bytes = 1000;
    options.bucket_bytes = 4000;
    options.shards = shards;
    return options;
}

// Backward of one step: gradients that differ from rank to rank, from step to step, and depend on
// the values, so that an old or a mixed-up value shows in all later steps.
Result<void> backward(GradientReducer& reducer, const Model& model, int step, int rank) {
    for (std::size_t layer = model.values.size(); layer-- > 0;) {
        const auto gradient = floats(reducer.gradient(layer));
        for (std::size_t i = 0; i < gradient.size(); ++i)
            gradient[i] += std::sin(static_cast<float>(i + 1) * (0.1f + static_cast<float>(rank)) +
                                    static_cast<float>(step)) +
                           0.1f * model.values[layer][i];
        if (auto done = reducer.ready(layer); !done) return done;
    }
    return {};
}

// The whole state on this rank.
struct Unsharded {
    Unsharded(ProcessGroup& group, const OptimizerRule& rule_now, std::size_t shards)
        : rule(rule_now),
          reducer(GradientReducer::make(group, model.parameters(), small(shards)).value()) {
        for (std::size_t kind = 0; kind < state_names(rule).size(); ++kind) {
            state.emplace_back();
            for (const auto& values : model.values) state.back().emplace_back(values.size());
        }
    }
    Result<void> step(int number, int rank, double clip) {
        if (auto done = reducer->zero(); !done) return done;
        if (auto done = backward(*reducer, model, number, rank); !done) return done;
        if (auto done = reducer->finish(); !done) return done;
        if (clip > 0)
            if (auto done = reducer->clip(clip); !done) return done.error();
        for (std::size_t layer = 0; layer < model.values.size(); ++layer) {
            std::vector<std::span<float>> own;
            for (auto& kind : state) own.push_back(kind[layer]);
            update(rule, number, 0.01f, model.values[layer], floats(reducer->gradient(layer)), own);
        }
        return {};
    }
    // The state as a program without sharding would save it.
    std::vector<Tensor> tensors() {
        std::vector<Tensor> all;
        const auto names = state_names(rule);
        for (std::size_t kind = 0; kind < names.size(); ++kind)
            for (std::size_t layer = 0; layer < model.values.size(); ++layer)
                all.push_back(tensor(names[kind] + "layer" + std::to_string(layer),
                                     {model.values[layer].size()}, std::span(state[kind][layer])));
        return all;
    }

    const OptimizerRule rule;
    Model model;
    std::unique_ptr<GradientReducer> reducer;
    std::vector<std::vector<std::vector<float>>> state;  // kind, layer, element
};

struct Sharded {
    Sharded(ProcessGroup& group, const OptimizerRule& rule)
        : optimizer(ShardedOptimizer::make(group, model.parameters(), rule, small()).value()) {}
    Result<void> step(int number, int rank, double clip) {
        auto& reducer = optimizer->reducer();
        if (auto done = reducer.zero(); !done) return done;
        if (auto done = backward(reducer, model, number, rank); !done) return done;
        if (auto done = reducer.finish(); !done) return done;
        if (clip > 0)
            if (auto done = reducer.clip(clip); !done) return done.error();
        return optimizer->step(0.01f);
    }

    Model model;
    std::unique_ptr<ShardedOptimizer> optimizer;
};

// Five steps of both, compared after each.
int same_bits(const Context& context, const OptimizerRule& rule, std::size_t shards) {
    GroupRank me(context);
    Unsharded whole(*me.group, rule, shards);
    Sharded shared(*me.group, rule);
    for (int step = 1; step <= 5; ++step) {
        if (!whole.step(step, context.rank.value, 0)) return 1;
        if (!shared.step(step, context.rank.value, 0)) return 2;
        if (!shared.optimizer->wait()) return 3;
        if (whole.model.values != shared.model.values) return 4;
    }
    return 0;
}

const OptimizerRule kRules[] = {OptimizerRule::sgd(0.9f), OptimizerRule::sgd(0),
                                OptimizerRule::adam(), OptimizerRule::adamw()};

// The training of one rule on so many ranks, both with buckets for so many shards.
void expect_same_bits(const OptimizerRule& rule, std::size_t world, std::size_t shards) {
    const auto ends = run_ranks(static_cast<int>(world), [&](const Context& context) {
        return same_bits(context, rule, shards);
    });
    EXPECT_EQ(ends, Ends(world, 0)) << world;
}

TEST(ShardedOptimizer, HasTheBitsOfOneThatIsNotShared) {
    for (const auto& rule : kRules) expect_same_bits(rule, 3, 3);
    for (std::size_t world : {1, 2, 5}) expect_same_bits(OptimizerRule::adamw(), world, world);
    // Two numbers have only one sum.
    expect_same_bits(OptimizerRule::adamw(), 2, 1);
}

// The norm is added up in another order: equal to 1 in 10^6 after five steps.
TEST(ShardedOptimizer, ClipsByTheNormOfAllParts) {
    EXPECT_EQ(run_ranks(3,
                        [](const Context& context) {
                            GroupRank me(context);
                            Unsharded whole(*me.group, kRules[0], 3);
                            Sharded shared(*me.group, kRules[0]);
                            for (int step = 1; step <= 5; ++step) {
                                if (!whole.step(step, context.rank.value, 2)) return 1;
                                if (!shared.step(step, context.rank.value, 2)) return 2;
                            }
                            if (!shared.optimizer->wait()) return 3;
                            for (std::size_t layer = 0; layer < 4; ++layer)
                                for (std::size_t i = 0; i < whole.model.values[layer].size(); ++i)
                                    if (std::abs(whole.model.values[layer][i] -
                                                 shared.model.values[layer][i]) > 1e-6f)
                                        return 4;
                            return 0;
                        }),
              Ends({0, 0, 0}));
}

// Rank 1 alone sees a value that is no number, in a part that is not its own. All ranks name it.
TEST(ShardedOptimizer, FindsWhatIsNotFiniteOnAllRanks) {
    EXPECT_EQ(run_ranks(2,
                        [](const Context& context) {
                            GroupRank me(context);
                            Model model;
                            auto options = small();
                            options.find_not_finite = true;
                            auto optimizer = ShardedOptimizer::make(*me.group, model.parameters(),
                                                                    kRules[0], options)
                                                 .value();
                            auto& reducer = optimizer->reducer();
                            if (!reducer.zero()) return 1;
                            if (context.rank.value == 1)
                                floats(reducer.gradient(0))[5] =
                                    std::numeric_limits<float>::quiet_NaN();
                            if (!backward(reducer, model, 1, context.rank.value)) return 2;
                            return expects_error(reducer.finish(), "layer0");
                        }),
              Ends({0, 0}));
}

// 1/N of the state, but for the ends of the parts.
TEST(ShardedOptimizer, HasAShareOfTheState) {
    EXPECT_EQ(run_ranks(4,
                        [](const Context& context) {
                            GroupRank me(context);
                            Sharded shared(*me.group, OptimizerRule::adamw());
                            const auto all = shared.optimizer->whole_state_bytes();
                            double mine[] = {static_cast<double>(shared.optimizer->state_bytes())};
                            if (all != 8 * (3000 + 1 + 70 + 501)) return 1;
                            // Four parts of each of two buckets, each to a multiple of 256 bytes.
                            if (mine[0] > static_cast<double>(all) / 4 + 2 * 2 * 256) return 2;
                            if (!me.group->all_reduce_values(mine)) return 3;
                            return mine[0] == static_cast<double>(all) ? 0 : 4;
                        }),
              Ends({0, 0, 0, 0}));
}

std::vector<Tensor> tensors_of(Model& model) {
    std::vector<Tensor> all;
    for (std::size_t i = 0; i < model.values.size(); ++i)
        all.push_back(tensor("layer" + std::to_string(i), {model.values[i].size()},
                             std::span(model.values[i])));
    return all;
}

// Three steps on four ranks, then a snapshot.
void train_and_save(const std::string& folder, const OptimizerRule& rule) {
    EXPECT_EQ(run_ranks(4,
                        [&](const Context& context) {
                            GroupRank me(context);
                            Sharded shared(*me.group, rule);
                            for (int step = 1; step <= 3; ++step)
                                if (!shared.step(step, context.rank.value, 0)) return 1;
                            if (!shared.optimizer->wait()) return 2;
                            auto tensors = tensors_of(shared.model);
                            for (auto& state : shared.optimizer->state()) tensors.push_back(state);
                            auto place = SnapshotFolder::open(context, folder, 1, {}).value();
                            auto writer =
                                SnapshotWriter::make(context, *me.store, std::move(place)).value();
                            return writer->save(3, views_of(tensors), {}) && writer->wait() ? 0 : 3;
                        }),
              Ends({0, 0, 0, 0}));
}

// Three ranks go on with it, one program shared out, the other with the whole state on each rank.
// Both have the same bits from there on, so the state came back whole and to its places.
TEST(ShardedOptimizer, GoesOnWithAnotherNumberOfRanks) {
    const auto rule = OptimizerRule::adamw();
    test::TemporaryFolder folder;
    train_and_save(folder, rule);
    EXPECT_EQ(run_ranks(3,
                        [&](const Context& context) {
                            GroupRank me(context);
                            Unsharded whole(*me.group, rule, 3);
                            Sharded shared(*me.group, rule);
                            auto place = SnapshotFolder::open(context, folder, 1, {}).value();
                            auto tensors = tensors_of(shared.model);
                            for (auto& state : shared.optimizer->state()) tensors.push_back(state);
                            auto loaded =
                                resume_into(context, *me.store, place, tensors, seconds(10));
                            if (!loaded || !*loaded) return 1;
                            auto all = tensors_of(whole.model);
                            for (auto& state : whole.tensors()) all.push_back(state);
                            std::int64_t count = 0;
                            all.push_back(tensor("optimizer.step", {}, std::span(&count, 1)));
                            if (!load_slices(folder, {3, Generation(0)}, all)) return 2;
                            if (count != 3 || whole.model.values != shared.model.values) return 3;
                            if (whole.state[0][0] == std::vector<float>(3000)) return 4;
                            for (int step = 4; step <= 6; ++step) {
                                if (!whole.step(step, context.rank.value, 0)) return 5;
                                if (!shared.step(step, context.rank.value, 0)) return 6;
                            }
                            if (!shared.optimizer->wait()) return 7;
                            return whole.model.values == shared.model.values ? 0 : 8;
                        }),
              Ends({0, 0, 0}));
}

// Rank 1 has another optimizer, or another number of it. All ranks learn it before a step is made.
TEST(ShardedOptimizer, RefusesRanksWithDifferentRules) {
    auto slower = OptimizerRule::adam();
    slower.epsilon = 1e-7f;
    const std::pair<OptimizerRule, const char*> others[] = {
        {OptimizerRule::sgd(0.9f), "makes a ShardedOptimizer with SGD, and rank 0 with Adam; all"},
        {OptimizerRule::adamw(), "with AdamW, and rank 0 with Adam"},
        {OptimizerRule::adam(0.8f), "with beta1 0.8, and rank 0 with beta1 0.9"},
        {OptimizerRule::adam(0.9f, 0.99f), "with beta2 0.99, and rank 0 with beta2 0.999"},
        {OptimizerRule::adam(0.9f, 0.999f, 0.1f), "with decay 0.1, and rank 0 with decay 0"},
        {slower, "with epsilon 1e-07, and rank 0 with epsilon 1e-08"}};
    EXPECT_EQ(run_ranks(3,
                        [&](const Context& context) {
                            GroupRank me(context);
                            Model model;
                            for (const auto& [rule, sentence] : others) {
                                const auto made = ShardedOptimizer::make(
                                    *me.group, model.parameters(),
                                    context.rank.value == 1 ? rule : OptimizerRule::adam(),
                                    small());
                                if (made) return 1;
                                if (int code = expects_error(made.error(), sentence)) return code;
                                if (made.error().code() != ErrorCode::refused) return 2;
                            }
                            // The group is as good as before.
                            return me.group->barrier() ? 0 : 3;
                        }),
              Ends({0, 0, 0}));
}

// From its step `first` on, rank 1 has another rate, or clips otherwise. Returns the number of the
// step whose gradients could not be set to zero any more, with this sentence; 0: there was none.
int steps_until(GroupRank& me, int first, float rate, double clip, const std::string& sentence) {
    Sharded shared(*me.group, OptimizerRule::adamw());
    auto& reducer = shared.optimizer->reducer();
    for (int step = 1; step <= 40; ++step) {
        const bool other = me.group->rank() == 1 && step >= first;
        if (auto done = reducer.zero(); !done) return expects_error(done, sentence) ? -1 : step;
        if (!backward(reducer, shared.model, step, me.group->rank()) || !reducer.finish() ||
            !reducer.clip(other ? clip : 2.0) || !shared.optimizer->step(other ? rate : 0.01f))
            return -2;
    }
    return shared.optimizer->wait() ? 0 : -3;
}

// Rates and limits that differ from the first step on, or from a later one, after which the ranks
// do not compare at once.
TEST(ShardedOptimizer, FindsRanksThatMakeOtherSteps) {
    EXPECT_EQ(run_ranks(2,
                        [](const Context& context) {
                            GroupRank me(context);
                            if (steps_until(me, 99, 0, 0, "") != 0) return 1;
                            if (steps_until(me, 1, 0.02f, 2,
                                            "rank 1 makes step 1 with the rate 0.02, and rank 0 "
                                            "with 0.01; all ranks must make the same") != 2)
                                return 2;
                            if (steps_until(me, 5, 0.02f, 2,
                                            "rank 1 makes step 16 with the rate 0.02") != 17)
                                return 3;
                            if (steps_until(me, 17, 0.01f, 0.5,
                                            "in step 32 rank 1 clips gradients to a norm of 0.5, "
                                            "and rank 0 clips gradients to a norm of 2") != 33)
                                return 4;
                            return 0;
                        }),
              Ends({0, 0}));
}

// Ranks with 1, 4 and 2 samples. Nobody calls wait(): finish() of the Join returns with whole
// parameters, the same as those of a training whose state is not shared out.
TEST(ShardedOptimizer, IsWholeWhenAJoinEnds) {
    EXPECT_EQ(run_ranks(3,
                        [](const Context& context) {
                            GroupRank me(context);
                            const int rank = context.rank.value, samples[] = {1, 4, 2};
                            Unsharded whole(*me.group, kRules[3], 3);
                            Sharded shared(*me.group, kRules[3]);
                            auto& reducer = shared.optimizer->reducer();
                            Join join(*me.group, {.divide_by_initial_world_size = false});
                            auto state = whole.model.parameters();
                            for (const auto& tensor : whole.tensors())
                                state.push_back(
                                    {tensor.name, buffer_of(std::span(
                                                      reinterpret_cast<float*>(tensor.data.data()),
                                                      tensor.data.size() / sizeof(float)))});
                            join.add(*whole.reducer, state);
                            join.add(reducer, shared.model.parameters());
                            join.add({[&] { return shared.optimizer->step(0.01f); }});
                            for (int step = 1; step <= samples[rank]; ++step) {
                                if (!join.step() || !whole.step(step, rank, 0)) return 1;
                                if (!shared.step(step, rank, 0)) return 2;
                            }
                            const auto end = join.finish();
                            if (!end || end->last != 1 || end->steps != 4) return 3;
                            return whole.model.values == shared.model.values ? 0 : 4;
                        }),
              Ends({0, 0, 0}));
}

// What lies in the memory of the gradients then is no gradient of this step.
TEST(ShardedOptimizer, StepsOnceAfterEachAverage) {
    auto ends = run_ranks(2, [](const Context& context) {
        GroupRank rank(context);
        Model model;
        auto optimizer =
            ShardedOptimizer::make(*rank.group, model.parameters(), OptimizerRule::adamw(), small())
                .value();
        auto& reducer = optimizer->reducer();
        const std::string wanted = "needs the averaged gradients of a step of its own";
        for (int step = 0; step < 2; ++step) {
            if (!reducer.zero() || !backward(reducer, model, step, rank.group->rank())) return 1;
            if (int code = expects_error(optimizer->step(0.1f), wanted)) return code;
            if (!reducer.finish() || !optimizer->step(0.1f)) return 2;
            if (int code = expects_error(optimizer->step(0.1f), wanted)) return code;
        }
        return optimizer->wait() ? 0 : 3;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// Between step() and wait() a rank has new values of its own parts alone: such a snapshot would be
// a mixture of two steps.
TEST(ShardedOptimizer, IsNotSavedBeforeItsParametersAreWhole) {
    test::TemporaryFolder folder;
    const auto ends = run_ranks(2, [&](const Context& context) {
        GroupRank me(context);
        Sharded shared(*me.group, kRules[0]);
        auto opened = SnapshotFolder::open(context, folder, 2, {});
        auto writer = SnapshotWriter::make(context, *me.store, std::move(*opened)).value();
        const auto& values = shared.model.values[2];
        // A part of a parameter.
        const std::vector<TensorView> tensors{
            tensor_view("values", {20}, std::span<const float>(values).subspan(10, 20))};
        if (!writer->save(1, tensors, {}) || !shared.step(1, context.rank.value, 0)) return 1;
        if (int code = expects_error(writer->save(2, tensors, {}),
                                     "\"values\" is still being written; call "
                                     "ShardedOptimizer::wait() after step()"))
            return code;
        if (writer->wait() || !shared.optimizer->wait()) return 2;
        return writer->save(3, tensors, {}) && writer->wait() ? 0 : 3;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// Step 1 is given up on both ranks, at different gradients. The steps after it have the values of a
// training without it.
TEST(ShardedOptimizer, GoesOnAfterAStepThatWasGivenUp) {
    const auto ends = run_ranks(2, [&](const Context& context) {
        GroupRank me(context);
        Sharded one(*me.group, kRules[3]), other(*me.group, kRules[3]);
        auto& reducer = one.optimizer->reducer();
        if (!reducer.zero() || !reducer.ready(3)) return 1;
        if (context.rank.value == 1 && !reducer.ready(2)) return 2;
        for (int step = 1; step <= 2; ++step)
            for (Sharded* each : {&one, &other})
                if (!each->step(step, context.rank.value, 0) || !each->optimizer->wait()) return 3;
        return one.model.values == other.model.values ? 0 : 4;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

TEST(ShardedOptimizer, RefusesWhatItCannotUpdate) {
    EXPECT_EQ(run_ranks(1,
                        [](const Context& context) {
                            GroupRank me(context);
                            std::vector<double> wide(3);
                            auto made = ShardedOptimizer::make(
                                *me.group, {{"w", buffer_of(std::span(wide))}}, kRules[0]);
                            if (made) return 1;
                            if (int wrong = expects_error(made.error(),
                                                          "parameter \"w\" is F64; a "
                                                          "ShardedOptimizer takes F32"))
                                return wrong;
                            Model model;
                            auto options = small();
                            options.hook = std::make_shared<AllReduceHook>();
                            made = ShardedOptimizer::make(*me.group, model.parameters(), kRules[0],
                                                          options);
                            return made ? 2 : expects_error(made.error(), "leave");
                        }),
              Ends({0}));
}

}  // namespace
}  // namespace ddprun::trainer
