// Batches on a GPU: loaded into pinned memory, copied beside the program's kernels, and there
// before these read them. On the played GPU.
#include <gmock/gmock.h>

#include "tests/trainer/gpu_rank.h"
#include "trainer/training/data_loader.h"

namespace ddprun::trainer {
namespace {

using test::all_is_ordered;
using test::Device;
using test::launch;
using test::reads;

// Two epochs of 50 samples, of which each is its own number, 100 times.
int reads_all(unsigned seed, int threads) {
    Device::get().seed(seed);
    auto sampler = DistributedSampler::make({50, seed}, 0, 1).value();
    auto loader =
        DataLoader::make(sampler, {{DataType::float32, 100}, {DataType::int64, 1}},
                         [](const Sample& sample, const SampleMemory& to) -> Result<void> {
                             std::fill_n(reinterpret_cast<float*>(to[0].data()), 100,
                                         static_cast<float>(sample.index));
                             *reinterpret_cast<std::int64_t*>(to[1].data()) = sample.index;
                             return {};
                         },
                         {.batch = 7, .threads = threads, .memory = Memory::gpu})
            .value();
    const GpuStream stream = test::make_non_blocking_stream();
    bool right = true;
    for (int epoch = 0; epoch < 2; ++epoch) {
        while (true) {
            const auto batch = loader->next(stream);
            if (!batch) return 1;
            if (batch->samples != sampler.next(7)) return 2;
            if (batch->samples.empty()) break;
            const Buffer x = batch->fields[0], y = batch->fields[1];
            // The kernel runs when the played GPU comes to it, which may be several steps later.
            launch("forward", stream, {reads(x.data, x.bytes()), reads(y.data, y.bytes())},
                   [&right, x, y, samples = batch->samples] {
                       for (std::size_t i = 0; i < samples.size(); ++i)
                           right &= static_cast<std::int64_t*>(y.data)[i] == samples[i] &&
                                    static_cast<float*>(x.data)[100 * i + 99] ==
                                        static_cast<float>(samples[i]);
                   });
        }
        loader->next_epoch();
        sampler.next_epoch();
    }
    if (!GpuEvent::record(stream)->wait()) return 3;
    if (!right) return 4;
    return all_is_ordered() ? 0 : 5;
}

TEST(GpuDataLoader, CopiesInTheOrderOfTheStream) {
    for (unsigned seed = 1; seed <= 6; ++seed)
        EXPECT_EQ(
            test::run_ranks(
                1, [=](const Context&) { return reads_all(seed, static_cast<int>(1 + seed % 3)); }),
            test::Ends({0}))
            << seed;
}

}  // namespace
}  // namespace ddprun::trainer
