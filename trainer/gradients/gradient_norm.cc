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
double square_sum_as(const Buffer& buffer, double unit) {
    constexpr std::size_t kSums = 16;
    const T* values = static_cast<const T*>(buffer.data);
    const double by = 1 / unit;
    double sums[kSums] = {};
    std::size_t i = 0;
    for (; i + kSums <= buffer.count; i += kSums)
        for (std::size_t s = 0; s < kSums; ++s) {
            const double value = static_cast<double>(values[i + s]) * by;
            sums[s] += value * value;
        }
    for (; i < buffer.count; ++i) {
        const double value = static_cast<double>(values[i]) * by;
        sums[i % kSums] += value * value;
    }
    return std::accumulate(std::begin(sums), std::end(sums), 0.0);
}

double square_sum(const Buffer& buffer, double unit) {
    switch (buffer.type) {
        case DataType::float64:
            return square_sum_as<double>(buffer, unit);
        case DataType::float16:
            return square_sum_as<Half>(buffer, unit);
        case DataType::bfloat16:
            return square_sum_as<BFloat16>(buffer, unit);
        default:
            return square_sum_as<float>(buffer, unit);
    }
}

// 2^600, a power of two so that nothing is rounded: any double divided by it has a square below
// 2^848.
constexpr double kLarge = 0x1p600;

}  // namespace

Result<void> GradientNorm::prepare(Memory kind, std::size_t sums) {
    kind_ = kind;
    host_.assign(sums, 0);
    unit_.assign(sums, 1);
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
    for (std::size_t sum = first; sum < first + count; ++sum) set(sum, 0);
    return {};
}

Result<void> GradientNorm::add(std::size_t sum, const Buffer& buffer, int lane, GpuStream stream) {
    if (kind_ == Memory::gpu) {
        auto* scratch =
            static_cast<char*>(scratch_.data()) + static_cast<std::size_t>(lane) * kGpuSumScratch;
        return gpu_add_square_sum(on_gpu(sum), buffer.data, gpu_float_of(buffer.type), buffer.count,
                                  scratch, stream);
    }
    const double before = host_[sum];
    host_[sum] += square_sum(buffer, unit_[sum]);
    if (std::isfinite(host_[sum]) || !std::isfinite(before) || unit_[sum] != 1 ||
        buffer.type != DataType::float64)
        return {};
    unit_[sum] = kLarge;
    host_[sum] = before / kLarge / kLarge + square_sum(buffer, kLarge);
    return {};
}

Result<void> GradientNorm::clip(std::size_t sum, const Buffer& buffer, double most,
                                GpuStream stream) {
    if (kind_ == Memory::gpu)
        return gpu_clip(buffer.data, gpu_float_of(buffer.type), buffer.count, on_gpu(sum), most,
                        stream);
    const double norm = std::sqrt(host_[sum]) * unit_[sum];
    if (norm > most && std::isfinite(norm)) divide(buffer, norm / most);
    return {};
}

Result<double> GradientNorm::square(std::size_t sum, GpuStream stream) {
    const auto read = this->read(sum, 1, stream);
    if (!read) return read.error();
    return read->front() * unit_[sum] * unit_[sum];
}

Result<double> GradientNorm::norm(std::size_t sum, GpuStream stream) {
    const auto read = this->read(sum, 1, stream);
    if (!read) return read.error();
    return std::sqrt(read->front()) * unit_[sum];
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
