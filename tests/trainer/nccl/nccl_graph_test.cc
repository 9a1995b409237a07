// A training step on a real GPU, on streams of the program and captured into a CUDA graph. Skipped
// where there is no GPU. (tests/trainer/gradients/gpu_reducer_test.cc has the same on the played
// GPU, for all ranks.)
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>

#include <cmath>
#include <cstdio>

#include "tests/trainer/ranks.h"
#include "trainer/backend/make_process_group.h"
#include "trainer/gradients/gradient_reducer.h"

namespace ddprun::trainer {
namespace {

using std::chrono::seconds;

constexpr std::size_t kCount = 1 << 20;

// Backward of one layer: its gradient is a copy of what `source` holds, on this stream.
Result<void> backward(const GradientReducer& reducer, std::size_t layer, const void* source,
                      cudaStream_t stream) {
    const Buffer g = reducer.gradient(layer);
    return gpu_copy(g.data, source, g.bytes(), stream);
}

Result<void> try_step(GradientReducer& reducer, const void* source, cudaStream_t main,
                      cudaStream_t side) {
    if (auto done = reducer.zero(main); !done) return done;
    const auto zeroed = GpuEvent::record(main);
    if (!zeroed) return zeroed.error();
    if (auto done = zeroed->before(side); !done) return done;
    for (std::size_t layer : {1, 0}) {
        cudaStream_t stream = layer ? side : main;
        if (auto done = backward(reducer, layer, source, stream); !done) return done;
        if (auto done = reducer.ready(layer, stream); !done) return done;
    }
    if (auto done = reducer.finish(main); !done) return done;
    return reducer.begin_clip(std::sqrt(2.0 * kCount), main);
}

bool step(GradientReducer& reducer, const void* source, cudaStream_t main, cudaStream_t side) {
    const auto done = try_step(reducer, source, main, side);
    if (!done) std::fprintf(stderr, "a step: %s\n", done.error().sentence().c_str());
    return static_cast<bool>(done);
}

// All values 3 are clipped to 1; the norm is that of before.
bool is_right(GradientReducer& reducer, cudaStream_t stream) {
    const auto norm = reducer.norm(stream);
    if (!norm || std::abs(*norm - 3 * std::sqrt(2.0 * kCount)) > 1e-3) return false;
    std::vector<float> values(kCount);
    for (std::size_t layer : {0, 1}) {
        if (!gpu_copy(values.data(), reducer.gradient(layer).data, kCount * 4, stream))
            return false;
        if (!GpuEvent::record(stream)->wait()) return false;
        for (float value : values)
            if (std::abs(value - 1) > 1e-6f) return false;
    }
    return true;
}

int steps_on_streams_and_in_a_graph(const Context& context) {
    if (!gpu_count()) return 77;
    auto store = connect_store(context, seconds(30)).value();
    auto group = make_process_group(context, *store, {Backend::nccl, seconds(60), {}}).value();
    std::vector<float> threes(kCount, 3.0f);
    void* source = gpu_allocate(kCount * 4).value();
    void* weights = gpu_allocate(2 * kCount * 4).value();
    if (!gpu_copy(source, threes.data(), kCount * 4)) return 1;
    const Buffer first{weights, kCount, DataType::float32};
    const Buffer second{static_cast<float*>(weights) + kCount, kCount, DataType::float32};
    auto reducer = GradientReducer::make(*group, {{"first", first}, {"second", second}}).value();
    cudaStream_t main = nullptr, side = nullptr;
    if (cudaStreamCreateWithFlags(&main, cudaStreamNonBlocking) ||
        cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking))
        return 2;
    for (int i = 0; i < 5; ++i)
        if (!step(*reducer, source, main, side) || !is_right(*reducer, main)) return 3;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t replay = nullptr;
    if (cudaStreamBeginCapture(main, cudaStreamCaptureModeGlobal)) return 4;
    const bool captured = step(*reducer, source, main, side);
    if (cudaStreamEndCapture(main, &graph) || !captured) return 5;
    if (cudaGraphInstantiate(&replay, graph, 0)) return 6;
    for (int i = 0; i < 5; ++i)
        if (cudaGraphLaunch(replay, main) || !is_right(*reducer, main)) return 7;
    // Graphs of NCCL's calls go before their communicator.
    cudaGraphExecDestroy(replay);
    cudaGraphDestroy(graph);
    reducer.reset();
    gpu_free(source);
    gpu_free(weights);
    return group->barrier() ? 0 : 8;
}

TEST(NcclGraph, StepsOnStreamsAndInAGraph) {
    const auto ends = test::run_ranks(1, steps_on_streams_and_in_a_graph, seconds(120));
    if (ends == test::Ends({77})) GTEST_SKIP() << "no GPU here";
    EXPECT_EQ(ends, test::Ends({0}));
}

}  // namespace
}  // namespace ddprun::trainer
