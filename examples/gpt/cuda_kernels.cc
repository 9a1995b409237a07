// The table of the GPU's kernels: matrix products with cuBLAS, the rest with own kernels.
#include "examples/gpt/cuda_kernels.h"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <cmath>

#include "examples/cublas_library.h"
#include "examples/gpt/embed_kernels.h"
#include "examples/gpt/layer_kernels.h"
#include "examples/gpt/softmax_kernels.h"

namespace example::gpt {
namespace {

using ddprun::Error;
using ddprun::ErrorCode;
using ddprun::Result;

// A function of kernels.h has no object, so what all of them need stands here: cuBLAS, and the
// first thing that went wrong. One thread uses it.
struct Device {
    const CublasLibrary* cublas = nullptr;
    cublasHandle_t handle = nullptr;
    const char* problem = nullptr;
    void* scratch = nullptr;  // for the sums of columns of the widest layer so far
    long widest = 0;

    // For sums of so many columns; null if there is no memory. Kernels of before have ended when
    // the older scratch is free.
    float* scratch_for(long width) {
        if (width <= widest) return static_cast<float*>(scratch);
        note(cudaFree(scratch));
        scratch = nullptr;
        const auto bytes = static_cast<std::size_t>(column_scratch(width)) * sizeof(float);
        const auto status = cudaMalloc(&scratch, bytes);
        note(status);
        widest = status == cudaSuccess ? width : 0;
        return static_cast<float*>(scratch);
    }
    void note(cudaError_t status) {
        if (status != cudaSuccess && !problem) problem = cudaGetErrorString(status);
    }
    void note(cublasStatus_t status) {
        if (status != CUBLAS_STATUS_SUCCESS && !problem) problem = cublas->status_string(status);
    }
};
Device& device() {
    static Device one;
    return one;
}

// Equal products, `count` of them, each so many numbers after the one before.
struct Repeat {
    int count = 1;
    long left = 0, right = 0, out = 0;
};

template <class T>
constexpr cudaDataType kType = CUDA_R_32F;
template <>
constexpr cudaDataType kType<Bfloat16> = CUDA_R_16BF;

// cuBLAS stores matrices by columns, ours are stored by rows. So it sees each of them transposed
// and computes outᵀ = rightᵀ × leftᵀ. A matrix of ours that is not transposed needs no
// transposition.
template <class T, class Out>
void multiply_each(const BasicProduct<T, Out>& p, const Repeat& repeat) {
    Device& d = device();
    if (p.bias) d.note(launch_bias(p.out, p.bias, p.rows, p.columns, p.add));
    const float beta = p.bias || p.add ? 1 : 0;
    auto turned = [](const auto& m) { return m.column == 1 ? CUBLAS_OP_N : CUBLAS_OP_T; };
    // From one row, as it lies in memory, to the next.
    auto stride = [](const auto& m) { return static_cast<int>(m.column == 1 ? m.row : m.column); };
    d.note(d.cublas->gemm_strided_batched(
        d.handle, turned(p.right), turned(p.left), static_cast<int>(p.columns),
        static_cast<int>(p.rows), static_cast<int>(p.depth), &p.scale, p.right.data, kType<T>,
        stride(p.right), repeat.right, p.left.data, kType<T>, stride(p.left), repeat.left, &beta,
        p.out, kType<Out>, static_cast<int>(p.out_row), repeat.out, repeat.count,
        CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
}

template <class T, class Out>
void multiply(const BasicProduct<T, Out>& p) {
    multiply_each(p, {});
}

// The heads of one sequence: their parts of qkv lie side by side, their scores one after the other.
template <class T>
struct Sequence {
    Sequence(const BasicAttention<T>& a, long index)
        : a(a),
          row(3 * a.width()),
          scores(a.length * a.length),
          qkv(index * a.length * row),
          shares(index * a.heads * scores),
          out(index * a.length * a.width()),
          heads(static_cast<int>(a.heads)) {}

    // Number `which` of query, key and value.
    BasicMatrix<T> part(const T* of, int which) const {
        return {of + qkv + which * a.width(), row};
    }
    T* part(T* of, int which) const { return of + qkv + which * a.width(); }

    const BasicAttention<T>& a;
    long row, scores;       // from one position to the next; of one head
    long qkv, shares, out;  // where the sequence begins
    int heads;
};

template <class T>
void attention(const BasicAttention<T>& a, T* out) {
    const float scale = 1 / std::sqrt(static_cast<float>(a.size));
    for (long b = 0; b < a.batch; ++b) {
        const Sequence s(a, b);
        multiply_each<T, T>({.left = s.part(a.qkv, 0),
                             .right = s.part(a.qkv, 1).transposed(),
                             .rows = a.length,
                             .columns = a.length,
                             .depth = a.size,
                             .out = a.shares + s.shares,
                             .out_row = a.length,
                             .scale = scale},
                            {s.heads, a.size, a.size, s.scores});
    }
    device().note(launch_softmax(a.shares, a.batch * a.heads * a.length, a.length));
    for (long b = 0; b < a.batch; ++b) {
        const Sequence s(a, b);
        multiply_each<T, T>({.left = {a.shares + s.shares, a.length},
                             .right = s.part(a.qkv, 2),
                             .rows = a.length,
                             .columns = a.size,
                             .depth = a.length,
                             .out = out + s.out,
                             .out_row = a.width()},
                            {s.heads, s.scores, a.size, a.size});
    }
}

template <class T>
void attention_backward(const BasicAttention<T>& a, const T* d_out, T* d_qkv, T* scratch) {
    // out (length × size) = left (length × length) × right (length × size), for each head.
    auto apply = [&](const Sequence<T>& s, BasicMatrix<T> left, BasicMatrix<T> right, T* out) {
        multiply_each<T, T>({.left = left,
                             .right = right,
                             .rows = a.length,
                             .columns = a.size,
                             .depth = a.length,
                             .out = out,
                             .out_row = s.row},
                            {s.heads, s.scores, a.size, a.size});
    };
    for (long b = 0; b < a.batch; ++b) {
        const Sequence s(a, b);
        const BasicMatrix<T> d{d_out + s.out, a.width()}, shares{a.shares + s.shares, a.length};
        multiply_each<T, T>({.left = d,
                             .right = s.part(a.qkv, 2).transposed(),
                             .rows = a.length,
                             .columns = a.length,
                             .depth = a.size,
                             .out = scratch + s.shares,
                             .out_row = a.length},
                            {s.heads, a.size, a.size, s.scores});
        apply(s, shares.transposed(), d, s.part(d_qkv, 2));
    }
    device().note(launch_softmax_backward(scratch, a.shares, a.batch * a.heads * a.length, a.length,
                                          1 / std::sqrt(static_cast<float>(a.size))));
    for (long b = 0; b < a.batch; ++b) {
        const Sequence s(a, b);
        const BasicMatrix<T> scores{scratch + s.shares, a.length};
        apply(s, scores, s.part(a.qkv, 1), s.part(d_qkv, 0));
        apply(s, scores.transposed(), s.part(a.qkv, 0), s.part(d_qkv, 1));
    }
}

template <class T>
void add_rows(float* out, const T* in, long rows, long width) {
    if (float* scratch = device().scratch_for(width))
        device().note(launch_add_rows(out, in, rows, width, scratch));
}

template <class T>
void layer_norm_backward(const LayerNorm& norm, const T* d_out, float* d_in, float* d_weight,
                         float* d_bias) {
    if (float* scratch = device().scratch_for(norm.width))
        device().note(launch_layer_norm_backward(norm, d_out, d_in, d_weight, d_bias, scratch));
}

// A launcher of the kernels as a function of kernels.h: what it returns is noted.
template <auto kLaunch>
struct Noted;
template <class... Arguments, cudaError_t (*kLaunch)(Arguments...)>
struct Noted<kLaunch> {
    static void call(Arguments... arguments) { device().note(kLaunch(arguments...)); }
};

void copy(float* out, const float* in, long count) {
    const auto bytes = static_cast<std::size_t>(count) * sizeof(float);
    device().note(cudaMemcpyAsync(out, in, bytes, cudaMemcpyDeviceToDevice));
}

void narrow(float* out, const float* in, long count) { copy(out, in, count); }
void narrow(Bfloat16* out, const float* in, long count) {
    device().note(launch_narrow(out, in, count));
}

void zero(float* out, long count) {
    device().note(cudaMemsetAsync(out, 0, static_cast<std::size_t>(count) * sizeof(float)));
}

const char* problem() {
    const char* found = device().problem;
    device().problem = nullptr;
    return found;
}

}  // namespace

template <class T>
Result<const BasicKernels<T>*> cuda_kernels() {
    Device& d = device();
    auto cublas = cublas_library();
    if (!cublas) return cublas.error();
    d.cublas = *cublas;
    if (!d.handle) {
        const auto status = d.cublas->create(&d.handle);
        if (status != CUBLAS_STATUS_SUCCESS)
            return Error(ErrorCode::unavailable,
                         std::string("cuBLAS: ") + d.cublas->status_string(status));
    }
    static const BasicKernels<T> kernels{"the GPU",
                                         multiply<T, T>,
                                         multiply<T, float>,
                                         add_rows<T>,
                                         Noted<launch_layer_norm<T>>::call,
                                         layer_norm_backward<T>,
                                         attention<T>,
                                         attention_backward<T>,
                                         Noted<launch_gelu<T>>::call,
                                         Noted<launch_gelu_backward<T>>::call,
                                         narrow,
                                         copy,
                                         zero,
                                         Noted<launch_embed>::call,
                                         Noted<launch_embed_backward>::call,
                                         Noted<launch_cross_entropy<T>>::call,
                                         Noted<launch_adam>::call,
                                         problem};
    return &kernels;
}

template Result<const BasicKernels<float>*> cuda_kernels();
template Result<const BasicKernels<Bfloat16>*> cuda_kernels();

}  // namespace example::gpt
