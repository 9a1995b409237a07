// The GPT on a GPU against the one on the CPU: losses, gradients, steps and logits. Without a GPU,
// the test only checks that the error says so.
#include <gmock/gmock.h>

#include <cmath>

#include "examples/gpt/cpu_kernels.h"
#include "examples/gpt/cuda_kernels.h"
#include "examples/gpt/gpt_model.h"
#include "examples/random.h"
#include "tests/trainer/group_rank.h"
#include "trainer/backend/make_process_group.h"
#include "trainer/gpu/gpu.h"

namespace example::gpt {
namespace {

using namespace ddprun::trainer;

// No size is a multiple of a warp or of a block, so kernels that forget the rest fail.
const GptShape kShape{37, 41, 2, 3, 66};

Batch batch_of(int rows, int length) {
    Batch batch{{}, {}, rows, length};
    for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(rows * length); ++i) {
        batch.tokens.push_back(static_cast<int>(mix(5, i) % 37));
        batch.targets.push_back(static_cast<int>(mix(6, i) % 37));
    }
    return batch;
}

// Whether the GPU's values are the CPU's, within a share of the largest one of each buffer. Prints
// the first value that is not.
bool near(const std::vector<NamedBuffer>& on_gpu, const std::vector<NamedBuffer>& on_cpu,
          float share) {
    for (std::size_t i = 0; i < on_cpu.size(); ++i) {
        std::vector<float> values(on_gpu[i].buffer.count);
        if (!gpu_copy(values.data(), on_gpu[i].buffer.data, on_gpu[i].buffer.bytes())) return false;
        const auto* expected = static_cast<const float*>(on_cpu[i].buffer.data);
        float most = 0;
        for (std::size_t k = 0; k < values.size(); ++k)
            most = std::max(most, std::abs(expected[k]));
        for (std::size_t k = 0; k < values.size(); ++k) {
            if (std::abs(values[k] - expected[k]) <= 1e-6f + share * most) continue;
            std::fprintf(stderr, "%s[%zu] is %g, on the CPU %g\n", on_gpu[i].name.c_str(), k,
                         static_cast<double>(values[k]), static_cast<double>(expected[k]));
            return false;
        }
    }
    return true;
}

// Batches of three sizes, so that memory of an older batch must be made larger and not read beyond
// its end. The exit code says what differs. `share`: how much it may.
int compare(const Context& context, Precision precision, float share) {
    auto store = connect_store(context, std::chrono::seconds(30)).value();
    auto group = make_process_group(context, *store, {Backend::nccl, std::chrono::seconds(60), {}});
    if (!group) return test::expects_error(group.error(), "no error");
    test::GroupRank host{Context()};
    const auto first = first_parameters(kShape, 4);
    auto kernels = cuda_kernels(precision);
    if (!kernels) return test::expects_error(kernels.error(), "no error");
    auto gpu = make_gpt(kShape, first, **kernels, Memory::gpu).value();
    auto cpu = make_gpt(kShape, first, cpu_kernels(), Memory::host).value();
    auto on_gpu = GradientReducer::make(**group, gpu->parameters()).value();
    auto on_cpu = GradientReducer::make(*host.group, cpu->parameters()).value();
    AdamOptions options;
    for (const Batch& batch : {batch_of(2, 41), batch_of(1, 7), batch_of(5, 40)}) {
        double losses[2];
        int at = 0;
        for (auto [gpt, reducer] :
             {std::pair(gpu.get(), on_gpu.get()), {cpu.get(), on_cpu.get()}}) {
            if (!reducer->zero()) return 1;
            losses[at++] = gpt->forward(batch, 1).value();
            if (!gpt->backward(*reducer) || !reducer->finish()) return 2;
        }
        if (std::abs(losses[0] - losses[1]) > static_cast<double>(share)) return 3;
        if (!near(on_gpu->gradients(), on_cpu->gradients(), share)) return 4;
        if (!gpu->update(*on_gpu, options) || !cpu->update(*on_cpu, options)) return 5;
        ++options.step;
        // AdamW makes steps of one size from small gradients, too, so only an exact product has the
        // same ones.
        if (precision == Precision::float32 &&
            !near(gpu->parameters(), cpu->parameters(), 10 * share))
            return 6;
    }
    const std::vector<int> tokens{3, 1, 4, 1, 5};
    const auto mine = gpu->next(tokens).value(), theirs = cpu->next(tokens).value();
    for (std::size_t i = 0; i < mine.size(); ++i)
        if (std::abs(mine[i] - theirs[i]) > 20 * share) return 7;
    return 0;
}

void expect_equal(Precision precision, float share) {
    // In a child: a process that has used CUDA cannot fork one that uses it.
    auto ends = test::run_ranks(
        1,
        [&](const Context& context) {
            if (gpu_count() > 0) return compare(context, precision, share);
            auto kernels = cuda_kernels(precision);
            if (kernels) return 90;
            std::fprintf(stderr, "%s\n", kernels.error().sentence().c_str());
            return kernels.error().code() == ddprun::ErrorCode::unavailable ? 77 : 91;
        },
        std::chrono::seconds(120));
    if (ends == test::Ends{77}) GTEST_SKIP() << "no GPU here";
    EXPECT_EQ(ends, test::Ends{0});
}

// Training on a GPU must be the training that was tested on the CPU.
TEST(GptCuda, IsTheSameInFloat32) { expect_equal(Precision::float32, 1e-4f); }

// bfloat16 has eight bits.
TEST(GptCuda, IsNearlyTheSameInBfloat16) { expect_equal(Precision::bfloat16, 0.05f); }

}  // namespace
}  // namespace example::gpt
