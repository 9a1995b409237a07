// What the library costs on a GPU at world 1: a step of kernels with the reducer and without it, in
// turn; and how fast a snapshot's copy is beside these kernels.
//
//   ninja -C build gpu_step && build/tests/gpu_step       exit code 77: no GPU here
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "trainer/backend/make_process_group.h"
#include "trainer/gpu/gpu_copier.h"
#include "trainer/gpu/gpu_math.h"
#include "trainer/gradients/gradient_reducer.h"

namespace ddprun::trainer {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kLayers = 48, kCount = std::size_t{1} << 20;  // 4 MiB each
constexpr int kPasses = 8;                                          // kernels of a layer
// What each of them reads. They take longer than their launches, as in a model that is worth a GPU:
// the host is ahead, and its time in the library counts only where the GPU waits for it.
constexpr std::size_t kActivations = std::size_t{16} << 20;
constexpr int kSteps = 60;

template <class T>
T good(Result<T> result) {
    if (result) return std::move(*result);
    std::fprintf(stderr, "gpu_step: %s\n", result.error().sentence().c_str());
    std::exit(1);
}
void good(const Result<void>& result) {
    if (result) return;
    std::fprintf(stderr, "gpu_step: %s\n", result.error().sentence().c_str());
    std::exit(1);
}

struct Bench {
    const void* weights;
    std::unique_ptr<GradientReducer> reducer;
    OwnGpuStream stream = good(OwnGpuStream::make());
    double* sum = static_cast<double*>(good(gpu_allocate(sizeof(double))));
    void* scratch = good(gpu_allocate(kGpuSumScratch));
    void* activations = good(gpu_allocate(kActivations * sizeof(float)));

    // Plays backward of one layer: passes over its activations; then its gradient is written.
    void backward(std::size_t layer) {
        for (int pass = 0; pass < kPasses; ++pass)
            good(gpu_add_square_sum(sum, activations, GpuFloat::float32, kActivations, scratch,
                                    stream.get()));
        const Buffer g = reducer->gradient(layer);
        good(gpu_copy(g.data, activations, g.bytes(), stream.get()));
    }

    // Milliseconds until the GPU is done, and microseconds of the host for the reducer's calls.
    std::pair<double, double> step(bool with_reducer) {
        const auto begun = Clock::now();
        Clock::duration host{};
        const auto count = [&](auto&& call) {
            const auto from = Clock::now();
            good(call());
            host += Clock::now() - from;
        };
        for (std::size_t layer = kLayers; layer-- > 0;) {
            backward(layer);
            if (with_reducer) count([&] { return reducer->ready(layer, stream.get()); });
        }
        if (with_reducer) count([&] { return reducer->finish(stream.get()); });
        wait();
        return {std::chrono::duration<double, std::milli>(Clock::now() - begun).count(),
                std::chrono::duration<double, std::micro>(host).count()};
    }

    void wait() { good(good(GpuEvent::record(stream.get())).wait()); }
};

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

void measure_steps(Bench& bench) {
    std::vector<double> with, without, host;
    for (int i = 0; i < kSteps + 5; ++i) {
        const auto [none, ignored] = bench.step(false);
        const auto [library, us] = bench.step(true);
        if (i < 5) continue;  // the first calls are compared, and the GPU gets up to speed
        without.push_back(none);
        with.push_back(library);
        host.push_back(us / static_cast<double>(bench.reducer->plan().buckets.size()));
    }
    std::printf("step: %.3f ms with the reducer, %.3f ms without: %+.2f %%\n", median(with),
                median(without), 100 * (median(with) / median(without) - 1));
    std::printf("host time to enqueue: %.1f us for each of %zu buckets\n", median(host),
                bench.reducer->plan().buckets.size());
}

// The copy of all weights, and a step that is given to the GPU at the same time.
void measure_copy(Bench& bench) {
    const std::size_t bytes = kLayers * kCount * sizeof(float);
    void* host = good(gpu_allocate_pinned(bytes));
    auto copier = good(GpuCopier::make());
    const double alone = bench.step(false).first;
    const auto begun = Clock::now();
    good(copier.begin(bench.stream.get()));
    good(copier.copy(host, bench.weights, bytes));
    const auto copied = good(copier.end());
    for (std::size_t layer = kLayers; layer-- > 0;) bench.backward(layer);
    good(copied.wait());
    const std::chrono::duration<double> copy = Clock::now() - begun;
    bench.wait();
    const std::chrono::duration<double, std::milli> step = Clock::now() - begun;
    std::printf("snapshot copy: %.1f GB/s; a step beside it %.3f ms, alone %.3f ms\n",
                static_cast<double>(bytes) / copy.count() / 1e9, step.count(), alone);
    gpu_free_pinned(host);
}

int run() {
    if (!gpu_count()) return 77;
    const Context context;
    auto store = good(connect_store(context));
    auto group =
        good(make_process_group(context, *store, {Backend::nccl, std::chrono::minutes(1), {}}));
    void* weights = good(gpu_allocate(kLayers * kCount * sizeof(float)));
    std::vector<NamedBuffer> parameters;
    for (std::size_t i = 0; i < kLayers; ++i)
        parameters.push_back(
            {std::to_string(i),
             {static_cast<float*>(weights) + i * kCount, kCount, DataType::float32}});
    Bench bench{weights, good(GradientReducer::make(*group, parameters))};
    measure_steps(bench);
    measure_copy(bench);
    bench.reducer.reset();
    return 0;
}

}  // namespace
}  // namespace ddprun::trainer

int main() { return ddprun::trainer::run(); }
