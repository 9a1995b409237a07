// The loop of `train` on the played GPU, with a network whose kernels say what they read and write.
// The real network needs CUDA; how its kernels, the reducer and the snapshots are ordered does not.
#include <gtest/gtest.h>

#include <algorithm>

#include "examples/training.h"
#include "tests/trainer/gpu_rank.h"
#include "tests/trainer/step_numbers_saved.h"

namespace ddprun::trainer {
namespace {

using test::all_is_ordered;
using test::Device;
using test::Ends;
using test::launch;
using test::reads;
using test::writes;

// A network on the default stream, as the one in CUDA is. All its numbers are the number of steps.
class PlayedMlp final : public example::Mlp {
  public:
    explicit PlayedMlp(const example::MlpShape& shape) : shape_(shape) {}

    std::vector<NamedBuffer> parameters() override { return parts(values_, ""); }
    std::vector<NamedBuffer> momenta() override { return parts(momenta_, "momentum."); }
    Result<float> forward(std::span<const float>, std::span<const float>) override {
        launch("forward", nullptr, {reads(values_.values(), values_.bytes())}, [] {});
        return 1.0f;
    }
    Result<void> backward(GradientReducer& reducer, float) override {
        for (std::size_t i = parameters().size(); i-- > 0;) {
            const Buffer to = reducer.gradient(i);
            launch("backward", nullptr,
                   {reads(values_.values(), values_.bytes()), writes(to.data, to.bytes())}, [] {});
            if (auto done = reducer.ready(i); !done) return done;
        }
        return {};
    }
    Result<void> update(std::span<const NamedBuffer>, std::span<const NamedBuffer> gradients, float,
                        float) override {
        std::vector<test::Range> ranges{writes(values_.values(), values_.bytes()),
                                        writes(momenta_.values(), momenta_.bytes())};
        for (const auto& [name, buffer] : gradients)
            ranges.push_back(reads(buffer.data, buffer.bytes()));
        launch("update", nullptr, ranges, [this, step = ++steps_] {
            for (auto* all : {&values_, &momenta_})
                std::fill_n(all->values(), shape_.parameters(), static_cast<float>(step));
        });
        return {};
    }

  private:
    std::vector<NamedBuffer> parts(const test::GpuFloats& all, const std::string& prefix) const {
        return example::named_parts(shape_, all.values(), prefix);
    }

    const example::MlpShape shape_;
    test::GpuFloats values_{shape_.parameters()}, momenta_{shape_.parameters()};
    int steps_ = 0;
};

// Trains four steps, each with a snapshot.
int trains(const Context& context, const std::string& folder, unsigned seed) {
    test::GpuRank me(context);
    Device::get().seed(seed);
    const auto data = example::Dataset::made(64, 4, 1);
    PlayedMlp mlp({4, 32});
    example::TrainOptions options;
    options.steps = 4;
    options.batch = 4;
    options.snapshot_every = 1;
    options.snapshot_dir = folder;
    options.snapshot_keep = 9;
    auto sampler = DistributedSampler::make({64, 1}, context.rank.value, context.world_size);
    {
        example::Training training({options, context, *me.store, *me.group, data, mlp, *sampler,
                                    StopRequest::from_environment()});
        training.begin();
        if (training.run() != example::Training::End::done) return 1;
        training.result();
    }
    return all_is_ordered() ? 0 : 2;
}

// Each snapshot has the numbers of its step, though the steps after it went on beside its copies:
// the update comes behind them, whatever order the GPU chooses.
TEST(TrainOnGpu, SavesEachStepBesideTheNext) {
    for (unsigned seed = 1; seed <= 3; ++seed) {
        test::TemporaryFolder folder;
        EXPECT_EQ(test::run_gpu_ranks(
                      2, [&](const Context& context) { return trains(context, folder, seed); }),
                  Ends({0, 0}));
        test::expect_step_numbers(folder, 4, {"w1", "b1", "w2", "b2", "momentum.w1"});
    }
}

}  // namespace
}  // namespace ddprun::trainer
