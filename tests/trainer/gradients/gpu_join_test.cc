// Ranks without samples on a GPU: zeros, means and state in the order of a stream. On the played
// GPU, with the double of NCCL.
#include <gmock/gmock.h>

#include "tests/trainer/gpu_rank.h"
#include "trainer/gradients/join.h"

namespace ddprun::trainer {
namespace {

using test::all_is_ordered;
using test::Device;
using test::Ends;
using test::GpuFloats;
using test::GpuRank;
using test::launch;
using test::reads;
using test::writes;

// Rank 1 has no samples: the mean is that of rank 0 alone, and rank 1 gets its state.
int joins(const Context& context, unsigned seed) {
    GpuRank me(context);
    Device::get().seed(seed);
    GpuFloats weights(300);
    const GpuStream stream = test::make_non_blocking_stream();
    auto reducer = GradientReducer::make(*me.group, {{"w", weights.buffer()}}).value();
    const Buffer gradient = reducer->gradient(0);
    Join join(*me.group, {.divide_by_initial_world_size = false});
    join.add(*reducer, {{"w", weights.buffer()}}, stream);
    for (int step = 0; context.is_first() && step < 3; ++step) {
        if (!join.step() || !reducer->zero(stream)) return 1;
        launch("backward", stream, {writes(gradient.data, gradient.bytes())}, [gradient] {
            for (std::size_t i = 0; i < gradient.count; ++i)
                static_cast<float*>(gradient.data)[i] += 6;
        });
        if (!reducer->ready(0, stream) || !reducer->finish(stream)) return 2;
        launch("optimizer", stream,
               {reads(gradient.data, gradient.bytes()), writes(weights.values(), weights.bytes())},
               [gradient, to = weights.values()] {
                   for (std::size_t i = 0; i < gradient.count; ++i)
                       to[i] -= static_cast<float*>(gradient.data)[i];
               });
    }
    const auto end = join.finish();
    if (!end || end->last != 0 || end->steps != 3) return 3;
    if (!weights.are(-18, stream)) return 4;
    return all_is_ordered() ? 0 : 5;
}

TEST(GpuJoin, TrainsOnInTheOrderOfAStream) {
    for (unsigned seed = 1; seed <= 4; ++seed)
        EXPECT_EQ(
            test::run_gpu_ranks(2, [=](const Context& context) { return joins(context, seed); }),
            Ends({0, 0}))
            << seed;
}

}  // namespace
}  // namespace ddprun::trainer
