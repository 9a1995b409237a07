// Loops on the host, kernels on the GPU.
#include "trainer/gradients/gradient_norm.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "trainer/gpu/gpu_math.h"
#include "trainer/gpu/gpu_stream.h"
#include "trainer/gradients/float_math.h"

namespace ddprun::trainer {
namespace {

// In double: the squares of many floats would lose precision, or overflow, as a float sum. Several
// sums at a time, because each addition to one sum waits for the one before.
template <class T>
double square_sum_as(const Buffer& buffer) {
    constexpr std::size_t kSums = 16;
    const T* values = static_cast<const T*>(buffer.data);
    double sums[kSums] = {};
    std::size_t i = 0;
    for (; i + kSums <= buffer.count; i += kSums)
        for (std::size_t s = 0; s < kSums; ++s) {
            const double value = static_cast<double>(values[i + s]);
            sums[s] += value * value;
        }
    for (; i < buffer.count; ++i) {
        const double value = static_cast<double>(values[i]);
        sums[i % kSums] += value * value;
    }
    return std::accumulate(std::begin(sums), std::end(sums), 0.0);
}

double square_sum(const Buffer& buffer) {
    switch (buffer.type) {
        case DataType::float64:
            return square_sum_as<double>(buffer);
        case DataType::float16:
            return square_sum_as<Half>(buffer);
        case DataType::bfloat16:
            return square_sum_as<BFloat16>(buffer);
        default:
            return square_sum_as<float>(buffer);
    }
}

}  // namespace

Result<void> GradientNorm::prepare(Memory kind, std::size_t sums) {
    kind_ = kind;
    host_.assign(sums, 0);
    if (kind == Memory::host) return {};
    auto memory = GroupMemory::make(kind, sums * sizeof(double));
    if (!memory) return memory.error();
    auto scratch = GroupMemory::make(kind, 2 * kGpuSumScratch);
    if (!scratch) return scratch.error();
    gpu_ = std::move(*memory);
    scratch_ = std::move(*scratch);
    return {};
}

Result<void> GradientNorm::reset(std::size_t first, std::size_t count, GpuStream stream) {
    if (kind_ == Memory::gpu) return gpu_zero(on_gpu(first), count * sizeof(double), stream);
    std::fill_n(host_.begin() + static_cast<std::ptrdiff_t>(first), count, 0.0);
    return {};
}

Result<void> GradientNorm::add(std::size_t sum, const Buffer& buffer, int lane, GpuStream stream) {
    if (kind_ == Memory::gpu) {
        auto* scratch =
            static_cast<char*>(scratch_.data()) + static_cast<std::size_t>(lane) * kGpuSumScratch;
        return gpu_add_square_sum(on_gpu(sum), buffer.data, gpu_float_of(buffer.type), buffer.count,
                                  scratch, stream);
    }
    host_[sum] += square_sum(buffer);
    return {};
}

Result<void> GradientNorm::clip(std::size_t sum, const Buffer& buffer, double most,
                                GpuStream stream) {
    if (kind_ == Memory::gpu)
        return gpu_clip(buffer.data, gpu_float_of(buffer.type), buffer.count, on_gpu(sum), most,
                        stream);
    const double norm = std::sqrt(host_[sum]);
    if (norm > most) divide(buffer, norm / most);
    return {};
}

Result<std::vector<double>> GradientNorm::read(std::size_t first, std::size_t count,
                                               GpuStream stream) {
    const auto begin = host_.begin() + static_cast<std::ptrdiff_t>(first);
    if (kind_ == Memory::gpu) {
        auto done = gpu_copy(&*begin, on_gpu(first), count * sizeof(double), stream);
        if (!done) return done.error();
        auto there = GpuEvent::record(stream);
        if (!there) return there.error();
        if (auto waited = there->wait(); !waited) return waited.error();
    }
    return std::vector<double>(begin, begin + static_cast<std::ptrdiff_t>(count));
}

}  // namespace ddprun::trainer
