// How long the host takes to give a step's buckets to the GPU, per bucket: ready() with its event,
// the call, and the waits of finish(). On the played GPU, which is held meanwhile. Its own
// bookkeeping is in the figure.
//
//   ninja -C build trainer_enqueue_bench && build/tests/trainer_enqueue_bench
#include <algorithm>
#include <cstdio>

#include "tests/trainer/gpu_rank.h"
#include "trainer/gradients/gradient_reducer.h"

namespace ddprun::trainer {
namespace {

constexpr std::size_t kBuckets = 25;
constexpr int kSteps = 200;

double microseconds_of_a_step(GradientReducer& reducer, GpuStream stream) {
    test::Device::get().hold(true);
    const auto begun = std::chrono::steady_clock::now();
    for (std::size_t i = kBuckets; i-- > 0;)
        if (!reducer.ready(i, stream)) std::abort();
    if (!reducer.finish(stream)) std::abort();
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begun;
    test::Device::get().hold(false);
    if (!GpuEvent::record(stream)->wait()) std::abort();
    return took.count() / kBuckets;
}

int measure(const Context& context) {
    test::GpuRank me(context);
    test::GpuFloats memory(kBuckets * 64);
    std::vector<NamedBuffer> parameters;
    for (std::size_t i = 0; i < kBuckets; ++i)
        parameters.push_back(
            {std::to_string(i), {memory.values() + i * 64, 64, DataType::float32}});
    ReducerOptions options;
    options.first_bucket_bytes = options.bucket_bytes = 4;
    auto reducer = GradientReducer::make(*me.group, parameters, options).value();
    const GpuStream stream = test::make_non_blocking_stream();
    std::vector<double> times;
    for (int step = 0; step < kSteps; ++step)
        times.push_back(microseconds_of_a_step(*reducer, stream));
    std::sort(times.begin(), times.end());
    std::printf(
        "host time to enqueue a bucket: %.1f us (median of %d steps of %zu buckets), "
        "fastest %.1f us\n",
        times[kSteps / 2], kSteps, kBuckets, times[0]);
    std::fflush(stdout);
    return 0;
}

}  // namespace
}  // namespace ddprun::trainer

int main() {
    ddprun::trainer::test::prepare_nccl();
    const auto ends = ddprun::trainer::test::run_ranks(1, ddprun::trainer::measure);
    return ends == ddprun::trainer::test::Ends({0}) ? 0 : 1;
}
