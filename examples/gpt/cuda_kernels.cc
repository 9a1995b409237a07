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
    cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
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

// cuBLAS stores matrices by columns, ours are stored by rows. So it sees each of them transposed
// and computes outᵀ = rightᵀ × leftᵀ. A matrix of ours that is not transposed needs no
// transposition.
void multiply_each(const Product& p, const Repeat& repeat) {
    Device& d = device();
    if (p.bias) d.note(launch_bias(p.out, p.bias, p.rows, p.columns, p.add));
    const float beta = p.bias || p.add ? 1 : 0;
    auto turned = [](const Matrix& m) { return m.column == 1 ? CUBLAS_OP_N : CUBLAS_OP_T; };
    // From one row, as it lies in memory, to the next.
    auto stride = [](const Matrix& m) {
        return static_cast<int>(m.column == 1 ? m.row : m.column);
    };
    d.note(d.cublas->gemm_strided_batched(
        d.handle, turned(p.right), turned(p.left), static_cast<int>(p.columns),
        static_cast<int>(p.rows), static_cast<int>(p.depth), &p.scale, p.right.data, CUDA_R_32F,
        stride(p.right), repeat.right, p.left.data, CUDA_R_32F, stride(p.left), repeat.left, &beta,
        p.out, CUDA_R_32F, static_cast<int>(p.out_row), repeat.out, repeat.count, d.compute,
        CUBLAS_GEMM_DEFAULT));
}

void multiply(const Product& p) { multiply_each(p, {}); }

// The heads of one sequence: their parts of qkv lie side by side, their scores one after the other.
struct Sequence {
    Sequence(const Attention& a, long index)
        : a(a),
          row(3 * a.width()),
          scores(a.length * a.length),
          qkv(index * a.length * row),
          shares(index * a.heads * scores),
          out(index * a.length * a.width()),
          heads(static_cast<int>(a.heads)) {}

    // Number `which` of query, key and value.
    Matrix part(const float* of, int which) const { return {of + qkv + which * a.width(), row}; }
    float* part(float* of, int which) const { return of + qkv + which * a.width(); }

    const Attention& a;
    long row, scores;       // from one position to the next; of one head
    long qkv, shares, out;  // where the sequence begins
    int heads;
};

void attention(const Attention& a, float* out) {
    const float scale = 1 / std::sqrt(static_cast<float>(a.size));
    for (long b = 0; b < a.batch; ++b) {
        const Sequence s(a, b);
        multiply_each({s.part(a.qkv, 0), s.part(a.qkv, 1).transposed(), a.length, a.length, a.size,
                       a.shares + s.shares, a.length, nullptr, scale, false},
                      {s.heads, a.size, a.size, s.scores});
    }
    device().note(launch_softmax(a.shares, a.batch * a.heads * a.length, a.length));
    for (long b = 0; b < a.batch; ++b) {
        const Sequence s(a, b);
        multiply_each({{a.shares + s.shares, a.length},
                       s.part(a.qkv, 2),
                       a.length,
                       a.size,
                       a.length,
                       out + s.out,
                       a.width(),
                       nullptr,
                       1,
                       false},
                      {s.heads, s.scores, a.size, a.size});
    }
}

void attention_backward(const Attention& a, const float* d_out, float* d_qkv, float* scratch) {
    for (long b = 0; b < a.batch; ++b) {
        const Sequence s(a, b);
        const Matrix d{d_out + s.out, a.width()}, shares{a.shares + s.shares, a.length};
        multiply_each({d, s.part(a.qkv, 2).transposed(), a.length, a.length, a.size,
                       scratch + s.shares, a.length, nullptr, 1, false},
                      {s.heads, a.size, a.size, s.scores});
        multiply_each({shares.transposed(), d, a.length, a.size, a.length, s.part(d_qkv, 2), s.row,
                       nullptr, 1, false},
                      {s.heads, s.scores, a.size, a.size});
    }
    device().note(launch_softmax_backward(scratch, a.shares, a.batch * a.heads * a.length, a.length,
                                          1 / std::sqrt(static_cast<float>(a.size))));
    for (long b = 0; b < a.batch; ++b) {
        const Sequence s(a, b);
        const Matrix scores{scratch + s.shares, a.length};
        multiply_each({scores, s.part(a.qkv, 1), a.length, a.size, a.length, s.part(d_qkv, 0),
                       s.row, nullptr, 1, false},
                      {s.heads, s.scores, a.size, a.size});
        multiply_each({scores.transposed(), s.part(a.qkv, 0), a.length, a.size, a.length,
                       s.part(d_qkv, 1), s.row, nullptr, 1, false},
                      {s.heads, s.scores, a.size, a.size});
    }
}

void add_rows(float* out, const float* in, long rows, long width) {
    if (float* scratch = device().scratch_for(width))
        device().note(launch_add_rows(out, in, rows, width, scratch));
}

void layer_norm_backward(const LayerNorm& norm, const float* d_out, float* d_in, float* d_weight,
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

void zero(float* out, long count) {
    device().note(cudaMemsetAsync(out, 0, static_cast<std::size_t>(count) * sizeof(float)));
}

const char* problem() {
    const char* found = device().problem;
    device().problem = nullptr;
    return found;
}

}  // namespace

Result<const Kernels*> cuda_kernels(Precision precision) {
    Device& d = device();
    auto cublas = cublas_library();
    if (!cublas) return cublas.error();
    d.cublas = *cublas;
    d.compute =
        precision == Precision::bfloat16 ? CUBLAS_COMPUTE_32F_FAST_16BF : CUBLAS_COMPUTE_32F;
    if (!d.handle) {
        const auto status = d.cublas->create(&d.handle);
        if (status != CUBLAS_STATUS_SUCCESS)
            return Error(ErrorCode::unavailable,
                         std::string("cuBLAS: ") + d.cublas->status_string(status));
    }
    static const Kernels kernels{"the GPU",
                                 multiply,
                                 add_rows,
                                 Noted<launch_layer_norm<float>>::call,
                                 layer_norm_backward,
                                 attention,
                                 attention_backward,
                                 Noted<launch_gelu<float>>::call,
                                 Noted<launch_gelu_backward<float>>::call,
                                 copy,
                                 zero,
                                 Noted<launch_embed>::call,
                                 Noted<launch_embed_backward>::call,
                                 Noted<launch_cross_entropy<float>>::call,
                                 Noted<launch_adam>::call,
                                 problem};
    return &kernels;
}

}  // namespace example::gpt
