// The CPU kernels. This file is compiled once for each kind of CPU, with GPT_KIND as the name of
// the function that returns them. It uses no inline function of the C++ library: the linker keeps
// one copy of such a function, and that could be one for another CPU.
#include "examples/gpt/kernels.h"

#include <math.h>
#ifdef _OPENMP
#include <omp.h>
#endif

namespace example::gpt {
namespace {

// The size of a tile, from the number of registers: kRows × kVectors sums must fit.
#if defined(__AVX512F__)
constexpr const char* kName = "AVX-512";
constexpr int kRows = 12, kVectors = 2;
#elif defined(__AVX2__)
constexpr const char* kName = "AVX2";
constexpr int kRows = 6, kVectors = 1;
#else
constexpr const char* kName = "any CPU";
constexpr int kRows = 3, kVectors = 1;
#endif

template <int N>
struct Number {
    static constexpr int value = N;
};

// Without OpenMP there is one thread.
#ifndef _OPENMP
constexpr int omp_get_thread_num() { return 0; }
constexpr int omp_get_num_threads() { return 1; }
#endif

constexpr long least(long a, long b) { return a < b ? a : b; }

// Part `index` of `parts` nearly equal parts of 0 … count, each a multiple of `unit`.
struct Range {
    long begin = 0, end = 0;
};
Range part_of(long count, long unit, long index, long parts) {
    const long units = (count + unit - 1) / unit;
    return {least(units * index / parts * unit, count),
            least(units * (index + 1) / parts * unit, count)};
}

// Calls f(0) … f(count - 1). The parts are the same for any number of threads, and with them what
// is computed in vectors and what is left over: tanhf() gives other bits there.
template <class F>
void each(long count, F f) {
    constexpr long kPart = 2048;
#pragma omp parallel for
    for (long begin = 0; begin < count; begin += kPart) {
        const long end = least(begin + kPart, count);
        for (long i = begin; i < end; ++i) f(i);
    }
}

}  // namespace
}  // namespace example::gpt

#include "examples/gpt/cpu_attention.h"
#include "examples/gpt/cpu_layers.h"
#include "examples/gpt/cpu_matmul.h"

namespace example::gpt {

const Kernels& GPT_KIND() {
    static const Kernels kernels{kName,
                                 multiply,
                                 multiply,
                                 add_rows,
                                 layer_norm,
                                 layer_norm_backward,
                                 attention,
                                 attention_backward,
                                 gelu,
                                 gelu_backward,
                                 copy,
                                 copy,
                                 zero,
                                 embed,
                                 embed_backward,
                                 cross_entropy,
                                 adam,
                                 [] { return static_cast<const char*>(nullptr); }};
    return kernels;
}

}  // namespace example::gpt
