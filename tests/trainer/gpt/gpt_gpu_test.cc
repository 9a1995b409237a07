// The loop of `gpt` on the played GPU, with a network whose kernels say what they read and write:
// each snapshot is copied beside the next step's forward and backward, in front of its AdamW.
#include <gtest/gtest.h>

#include <algorithm>

#include "examples/gpt/gpt_training.h"
#include "tests/trainer/gpu_rank.h"
#include "tests/trainer/step_numbers_saved.h"

namespace example::gpt {
namespace {

using namespace ddprun::trainer;
using ddprun::Result;
using test::Device;
using test::Ends;
using test::launch;
using test::reads;
using test::writes;

const GptShape kShape{2, 4, 1, 1, 4};

// A network on the default stream, as the one in CUDA is. All its numbers are the number of steps.
class PlayedGpt final : public Gpt {
  public:
    const GptShape& shape() const override { return kShape; }
    std::vector<NamedBuffer> parameters() override {
        return named_tensors(kShape, values_.values(), "");
    }
    std::vector<NamedBuffer> moments() override { return named_moments(kShape, moments_.values()); }
    Result<double> forward(const Batch&, float) override {
        launch("forward", nullptr, {reads(values_.values(), values_.bytes())}, [] {});
        return 1.0;
    }
    Result<void> backward(GradientReducer& reducer) override {
        for (std::size_t i = parameters().size(); i-- > 0;) {
            const Buffer to = reducer.gradient(i);
            launch("backward", nullptr,
                   {reads(values_.values(), values_.bytes()), writes(to.data, to.bytes())}, [] {});
            if (auto done = reducer.ready(i); !done) return done;
        }
        return {};
    }
    Result<void> update(const GradientReducer&, const AdamOptions& options) override {
        launch("AdamW", nullptr,
               {writes(values_.values(), values_.bytes()),
                writes(moments_.values(), moments_.bytes())},
               [this, step = static_cast<float>(options.step)] {
                   std::fill_n(values_.values(), values_.bytes() / sizeof(float), step);
                   std::fill_n(moments_.values(), moments_.bytes() / sizeof(float), step);
               });
        return {};
    }
    Result<std::vector<float>> next(std::span<const int>) override {
        return std::vector<float>(static_cast<std::size_t>(kShape.vocabulary));
    }

  private:
    test::GpuFloats values_{parameter_count(kShape)}, moments_{2 * parameter_count(kShape)};
};

// Trains four steps, each with a snapshot.
int trains(const Context& context, const std::string& folder, unsigned seed) {
    test::GpuRank me(context);
    Device::get().seed(seed);
    std::string words;
    for (int i = 0; i < 200; ++i) words += i % 3 ? 'a' : 'b';
    const auto text = Text::make(words, "ab", kShape.context).value();
    PlayedGpt gpt;
    GptOptions options;
    options.steps = 4;
    options.batch = 2;
    options.snapshot_every = 1;
    options.snapshot_dir = folder;
    options.snapshot_keep = 9;
    auto sampler = DistributedSampler::make({text.training_windows(), 1}, context.rank.value,
                                            context.world_size);
    {
        GptTraining training({options, context, *me.store, *me.group, text, gpt, *sampler,
                              StopRequest::from_environment()});
        training.begin();
        if (training.run() != GptTraining::End::done) return 2;
    }
    return test::all_is_ordered() ? 0 : 3;
}

TEST(GptOnGpu, SavesEachStepBesideTheNext) {
    for (unsigned seed = 1; seed <= 3; ++seed) {
        test::TemporaryFolder folder;
        EXPECT_EQ(test::run_gpu_ranks(
                      2, [&](const Context& context) { return trains(context, folder, seed); }),
                  Ends({0, 0}));
        test::expect_step_numbers(
            folder, 4, {"transformer.wte.weight", "adam_v.transformer.h.0.mlp.c_proj.weight"});
    }
}

}  // namespace
}  // namespace example::gpt
