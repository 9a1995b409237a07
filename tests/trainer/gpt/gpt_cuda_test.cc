// The GPT on a GPU against the one on the CPU: losses, gradients, steps and logits. Without a GPU,
// the test only checks that the error says so.
#include <gmock/gmock.h>

#include <algorithm>
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

// A network, and batches of three sizes, so that memory of an older batch must be made larger and
// not read beyond its end: rows and length.
struct Case {
    GptShape shape;
    std::pair<int, int> batches[3];
};
// No size is a multiple of a warp or of a block, so kernels that forget the rest fail.
const Case kOdd{{37, 41, 2, 3, 66}, {{2, 41}, {1, 7}, {5, 40}}};
// Rows are multiples of 8, which are read several numbers at a time, but not of 256; sums of
// columns have all their parts.
const Case kEven{{136, 136, 2, 2, 144}, {{3, 136}, {1, 8}, {9, 128}}};

Batch batch_of(const GptShape& shape, std::pair<int, int> size) {
    const auto [rows, length] = size;
    Batch batch{{}, {}, rows, length};
    const auto words = static_cast<std::uint64_t>(shape.vocabulary);
    for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(rows * length); ++i) {
        batch.tokens.push_back(static_cast<int>(mix(5, i) % words));
        batch.targets.push_back(static_cast<int>(mix(6, i) % words));
    }
    return batch;
}

using Values = std::vector<std::vector<float>>;

Values on_host(const std::vector<NamedBuffer>& buffers) {
    Values all;
    for (const auto& [name, buffer] : buffers) {
        all.emplace_back(buffer.count);
        EXPECT_TRUE(gpu_copy(all.back().data(), buffer.data, buffer.bytes()));
    }
    return all;
}

float most_of(const std::vector<float>& values) {
    float most = 0;
    for (float value : values) most = std::max(most, std::abs(value));
    return most;
}

// Which numbers of a gradient are as small as the error that is allowed for it. Some are: the sum
// of a key's bias is 0, since softmax does not see what is added to all scores. What is left is
// rounding noise, of which AdamW makes steps of the usual size.
class Noise {
  public:
    explicit Noise(const std::vector<NamedBuffer>& parameters) {
        for (const auto& [name, buffer] : parameters) noisy_.emplace_back(buffer.count);
    }

    // Once a number was noise, its parameter stays what the noise made of it. What is 0 on both
    // sides is no noise.
    void add(const Values& mine, const Values& theirs, float share) {
        for (std::size_t i = 0; i < noisy_.size(); ++i) {
            const float least = share * most_of(theirs[i]);
            for (std::size_t k = 0; k < noisy_[i].size(); ++k)
                if ((mine[i][k] != 0 || theirs[i][k] != 0) && std::abs(theirs[i][k]) <= least)
                    noisy_[i][k] = true;
        }
    }
    bool at(std::size_t i, std::size_t k) const { return noisy_[i][k]; }
    double share() const {
        double all = 0, noisy = 0;
        for (const auto& one : noisy_) {
            all += static_cast<double>(one.size());
            noisy += static_cast<double>(std::count(one.begin(), one.end(), true));
        }
        return noisy / all;
    }

  private:
    std::vector<std::vector<bool>> noisy_;
};

// Whether the GPU's values are the CPU's, within a share of the largest one of each buffer, but for
// noise. Prints the first value that is not.
bool near(const std::vector<NamedBuffer>& names, const Values& mine, const Values& theirs,
          float share, const Noise* noise = nullptr) {
    for (std::size_t i = 0; i < theirs.size(); ++i) {
        const float most = most_of(theirs[i]);
        for (std::size_t k = 0; k < theirs[i].size(); ++k) {
            if (noise && noise->at(i, k)) continue;
            if (std::abs(mine[i][k] - theirs[i][k]) <= 1e-6f + share * most) continue;
            std::fprintf(stderr, "%s[%zu] is %g, on the CPU %g\n", names[i].name.c_str(), k,
                         static_cast<double>(mine[i][k]), static_cast<double>(theirs[i][k]));
            return false;
        }
    }
    return true;
}

// The exit code says what differs. `share`: how much it may.
template <class T>
int compare(const Context& context, const Case& one, float share) {
    auto store = connect_store(context, std::chrono::seconds(30)).value();
    auto group = make_process_group(context, *store, {Backend::nccl, std::chrono::seconds(60), {}});
    if (!group) return test::expects_error(group.error(), "no error");
    test::GroupRank host{Context()};
    const auto first = first_parameters(one.shape, 4);
    auto kernels = cuda_kernels<T>();
    if (!kernels) return test::expects_error(kernels.error(), "no error");
    auto gpu = make_gpt(one.shape, first, **kernels, Memory::gpu).value();
    auto cpu = make_gpt(one.shape, first, cpu_kernels(), Memory::host).value();
    auto on_gpu = GradientReducer::make(**group, gpu->parameters()).value();
    auto on_cpu = GradientReducer::make(*host.group, cpu->parameters()).value();
    const auto names = gpu->parameters();
    Noise noise(names);
    AdamOptions options;
    for (const auto& size : one.batches) {
        const Batch batch = batch_of(one.shape, size);
        double losses[2];
        int at = 0;
        for (auto [gpt, reducer] :
             {std::pair(gpu.get(), on_gpu.get()), {cpu.get(), on_cpu.get()}}) {
            if (!reducer->zero()) return 1;
            losses[at++] = gpt->forward(batch, 1).value();
            if (!gpt->backward(*reducer) || !reducer->finish()) return 2;
        }
        if (std::abs(losses[0] - losses[1]) > static_cast<double>(share)) return 3;
        const Values mine = on_host(on_gpu->gradients()), theirs = on_host(on_cpu->gradients());
        if (!near(names, mine, theirs, share)) return 4;
        noise.add(mine, theirs, share);
        if (!gpu->update(*on_gpu, options) || !cpu->update(*on_cpu, options)) return 5;
        ++options.step;
        // Also what is no noise is less exact in bfloat16.
        if (std::is_same_v<T, float> && !near(names, on_host(gpu->parameters()),
                                              on_host(cpu->parameters()), 10 * share, &noise))
            return 6;
    }
    // The comparison was one of nearly all parameters.
    if (std::is_same_v<T, float> && noise.share() > 0.05) {
        std::fprintf(stderr, "%g of the gradients are noise\n", noise.share());
        return 8;
    }
    const std::vector<int> tokens{3, 1, 4, 1, 5};
    const auto mine = gpu->next(tokens).value(), theirs = cpu->next(tokens).value();
    if (mine.size() != theirs.size()) return 9;
    for (std::size_t i = 0; i < mine.size(); ++i)
        if (std::abs(mine[i] - theirs[i]) > 20 * share) return 7;
    return 0;
}

template <class T>
void expect_equal(const Case& one, float share) {
    // In a child: a process that has used CUDA cannot fork one that uses it.
    auto ends = test::run_ranks(
        1,
        [&](const Context& context) {
            if (gpu_count() > 0) return compare<T>(context, one, share);
            auto kernels = cuda_kernels<T>();
            if (kernels) return 90;
            std::fprintf(stderr, "%s\n", kernels.error().sentence().c_str());
            return kernels.error().code() == ddprun::ErrorCode::unavailable ? 77 : 91;
        },
        std::chrono::seconds(120));
    if (ends == test::Ends{77}) GTEST_SKIP() << "no GPU here";
    EXPECT_EQ(ends, test::Ends{0}) << "width " << one.shape.width;
}

// Training on a GPU must be the training that was tested on the CPU.
TEST(GptCuda, IsTheSameInFloat32) {
    expect_equal<float>(kOdd, 1e-4f);
    expect_equal<float>(kEven, 1e-4f);
}

// bfloat16 has eight bits.
TEST(GptCuda, IsNearlyTheSameInBfloat16) {
    expect_equal<Bfloat16>(kOdd, 0.05f);
    expect_equal<Bfloat16>(kEven, 0.05f);
}

}  // namespace
}  // namespace example::gpt
