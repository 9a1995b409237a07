// The example's network on a GPU against the one on the CPU. Without a GPU, the test only checks
// that the error says so.
#include <gmock/gmock.h>

#include <cmath>

#include "examples/dataset.h"
#include "examples/mlp.h"
#include "tests/trainer/group_rank.h"
#include "trainer/backend/make_process_group.h"
#include "trainer/gpu/gpu.h"

namespace ddprun::trainer {
namespace {

// 70 hidden units are no multiple of a warp (32 threads), so kernels that forget the rest fail.
const example::MlpShape kShape{16, 70};

// Whether the GPU's values are the CPU's, within what another order of additions changes. Prints
// the first value that is not.
bool near(const std::vector<NamedBuffer>& on_gpu, const std::vector<NamedBuffer>& on_cpu) {
    for (std::size_t i = 0; i < on_cpu.size(); ++i) {
        std::vector<float> values(on_gpu[i].buffer.count);
        if (!gpu_copy(values.data(), on_gpu[i].buffer.data, on_gpu[i].buffer.bytes())) return false;
        const auto* expected = static_cast<const float*>(on_cpu[i].buffer.data);
        for (std::size_t k = 0; k < values.size(); ++k) {
            if (std::abs(values[k] - expected[k]) <= 1e-5f + 1e-4f * std::abs(expected[k]))
                continue;
            std::fprintf(stderr, "%s[%zu] is %g, on the CPU %g\n", on_gpu[i].name.c_str(), k,
                         static_cast<double>(values[k]), static_cast<double>(expected[k]));
            return false;
        }
    }
    return true;
}

// Batches of three sizes, so that memory of an older batch must be made larger and not read beyond
// its end. Losses, gradients (of two micro-steps), parameters and momenta are compared after each.
// The exit code says which of them differs.
int compare(const Context& context) {
    auto store = connect_store(context, std::chrono::seconds(30)).value();
    auto group = make_process_group(context, *store, {Backend::nccl, std::chrono::seconds(60), {}});
    if (!group) return test::expects_error(group.error(), "no error");
    test::GroupRank host{Context()};
    const auto first = example::initial_parameters(kShape, 4);
    auto made = example::make_cuda_mlp(kShape, first);
    if (!made) return test::expects_error(made.error(), "no error");
    auto gpu = std::move(*made), cpu = example::make_cpu_mlp(kShape, first);
    auto on_gpu = GradientReducer::make(**group, gpu->parameters()).value();
    auto on_cpu = GradientReducer::make(*host.group, cpu->parameters()).value();
    const auto data = example::Dataset::made(128, kShape.inputs, 3);
    for (std::size_t samples : {100, 33, 128}) {
        const auto batch = data.head(samples, 0, 1);
        for (auto [mlp, reducer] :
             {std::pair(gpu.get(), on_gpu.get()), {cpu.get(), on_cpu.get()}}) {
            if (!reducer->zero() || !mlp->forward(batch.x, batch.y)) return 1;
            {
                // The first micro-step only accumulates.
                auto quiet = reducer->no_sync();
                if (!mlp->backward(*reducer)) return 2;
            }
            if (!mlp->forward(batch.x, batch.y) || !mlp->backward(*reducer)) return 3;
            if (!reducer->finish()) return 4;
        }
        if (!near(on_gpu->gradients(), on_cpu->gradients())) return 5;
        if (!gpu->update(gpu->parameters(), on_gpu->gradients(), 0.05f, 0.9f)) return 6;
        if (!cpu->update(cpu->parameters(), on_cpu->gradients(), 0.05f, 0.9f)) return 6;
        if (!near(gpu->parameters(), cpu->parameters())) return 7;
        if (!near(gpu->momenta(), cpu->momenta())) return 8;
        const float loss = gpu->forward(batch.x, batch.y).value();
        if (std::abs(loss - cpu->forward(batch.x, batch.y).value()) > 1e-4f) return 9;
    }
    return 0;
}

// Training on a GPU must be the training that was tested on the CPU.
TEST(Mlp, IsTheSameOnAGpu) {
    // In a child: a process that has used CUDA cannot fork one that uses it.
    auto ends = test::run_ranks(
        1,
        [](const Context& context) {
            if (gpu_count()) return compare(context);
            const auto first = example::initial_parameters(kShape, 4);
            auto made = example::make_cuda_mlp(kShape, first);
            if (made) return 90;
            std::fprintf(stderr, "%s\n", made.error().sentence().c_str());
            return made.error().code() == ErrorCode::unavailable ? 77 : 91;
        },
        std::chrono::seconds(120));
    if (ends == test::Ends({77})) GTEST_SKIP() << "no GPU here";
    EXPECT_EQ(ends, test::Ends({0}));
}

}  // namespace
}  // namespace ddprun::trainer
