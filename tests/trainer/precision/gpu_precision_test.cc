// Trainings in 16 bits on a GPU: all in the order of streams, and the same skipped steps. On the
// played GPU, with the double of NCCL.
#include <gmock/gmock.h>

#include <limits>

#include "tests/trainer/gpu_rank.h"
#include "trainer/gradients/gradient_reducer.h"
#include "trainer/precision/gradient_scaler.h"
#include "trainer/precision/master_weights.h"

namespace ddprun::trainer {
namespace {

using test::all_is_ordered;
using test::Device;
using test::Ends;
using test::GpuRank;
using test::launch;
using test::reads;
using test::writes;

// Each rank's third step overflows on rank 1 alone. Both ranks skip it, and the weights have moved
// by the other two steps; whatever order the played GPU chooses.
template <class T>
int trains(const Context& context, unsigned seed) {
    GpuRank me(context);
    Device::get().seed(seed);
    const DataType type = data_type<T>();
    auto memory = GroupMemory::make(Memory::gpu, 64 * size_of(type)).value();
    const Buffer weights{memory.data(), 64, type};
    const GpuStream stream = test::make_stream();
    const auto set = [&](const Buffer& to, float value) {
        launch("backward", stream, {writes(to.data, to.bytes())}, [to, value] {
            for (std::size_t i = 0; i < to.count; ++i)
                static_cast<T*>(to.data)[i] = static_cast<T>(value);
        });
    };
    set(weights, 1);
    ReducerOptions options;
    options.stream = stream;
    auto reducer = GradientReducer::make(*me.group, {{"w", weights}}, options).value();
    auto masters =
        MasterWeights::make(Memory::gpu, {{"w", weights}}, reducer->gradients(), stream).value();
    auto scaler = GradientScaler::make(*me.group, {{.initial = 64}}).value();
    for (int step = 0; step < 3; ++step) {
        if (!reducer->zero(stream)) return 1;
        const bool over = step == 2 && !context.is_first();
        set(reducer->gradient(0), over ? std::numeric_limits<float>::infinity()
                                       : static_cast<float>(0.25 * scaler.scale()));
        if (!reducer->ready(0, stream) || !reducer->finish(stream)) return 2;
        if (!masters.take_gradients(stream)) return 3;
        const auto go = scaler.unscale(masters.gradients(), stream);
        if (!go || *go != (step < 2)) return 4;
        if (!*go) continue;
        // 64 values of 0.25: the norm is 2. Clipped to 1 they are 0.125.
        const auto norm = masters.clip(1, stream);
        if (!norm || *norm != 2) return 5;
        const Buffer w = masters.weights()[0].buffer, g = masters.gradients()[0].buffer;
        launch("optimizer", stream, {writes(w.data, w.bytes()), reads(g.data, g.bytes())}, [w, g] {
            for (std::size_t i = 0; i < w.count; ++i)
                static_cast<float*>(w.data)[i] -= static_cast<float*>(g.data)[i];
        });
        if (!masters.publish(stream)) return 6;
    }
    std::vector<T> host(64);
    if (!gpu_copy(host.data(), weights.data, weights.bytes(), stream)) return 7;
    if (!GpuEvent::record(stream)->wait()) return 8;
    for (T value : host)
        if (static_cast<float>(value) != 0.75f) return 9;
    if (scaler.scale() != 32) return 10;
    return all_is_ordered() ? 0 : 11;
}

TEST(GpuPrecision, SkipsAndStepsInTheOrderOfAStream) {
    for (unsigned seed = 1; seed <= 4; ++seed) {
        EXPECT_EQ(test::run_gpu_ranks(
                      2, [&](const Context& context) { return trains<Half>(context, seed); }),
                  Ends({0, 0}));
        EXPECT_EQ(test::run_gpu_ranks(
                      2, [&](const Context& context) { return trains<BFloat16>(context, seed); }),
                  Ends({0, 0}));
    }
}

}  // namespace
}  // namespace ddprun::trainer
