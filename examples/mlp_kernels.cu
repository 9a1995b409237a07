#include "examples/mlp_kernels.h"

namespace example {
namespace {

constexpr int kThreads = 128;

__host__ __device__ constexpr int blocks_for(int count) {
    return (count + kThreads - 1) / kThreads;
}

__global__ void hidden_layer(MlpDevice m) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= m.batch * m.hidden) return;
    const int sample = at / m.hidden, h = at % m.hidden;
    float sum = m.parameters[m.hidden * m.inputs + h];
    for (int i = 0; i < m.inputs; ++i)
        sum += m.parameters[h * m.inputs + i] * m.x[sample * m.inputs + i];
    m.activations[at] = tanhf(sum);
}

__global__ void output_layer(MlpDevice m) {
    const int sample = blockIdx.x * blockDim.x + threadIdx.x;
    if (sample >= m.batch) return;
    const float* second = m.parameters + m.hidden * (m.inputs + 1);
    float out = second[m.hidden];
    for (int h = 0; h < m.hidden; ++h) out += second[h] * m.activations[sample * m.hidden + h];
    m.errors[sample] = out - m.y[sample];
}

// The derivative of the loss by the argument of unit h's tanh.
__device__ float d_sum(const MlpDevice& m, int sample, int h) {
    const float a = m.activations[sample * m.hidden + h];
    const float second = m.parameters[m.hidden * (m.inputs + 1) + h];
    return 2 * m.errors[sample] / m.batch * second * (1 - a * a);
}

// One thread for each gradient, one for the loss, one for the flag.
__global__ void gradients(MlpDevice m) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    const int bias1 = m.hidden * m.inputs, weight2 = bias1 + m.hidden, bias2 = weight2 + m.hidden;
    if (at > bias2 + 2) return;
    float sum = at == bias2 + 2 ? m.flag : 0;
    for (int s = 0; s < m.batch && at <= bias2 + 1; ++s) {
        const float d_out = 2 * m.errors[s] / m.batch;
        if (at < bias1)
            sum += d_sum(m, s, at / m.inputs) * m.x[s * m.inputs + at % m.inputs];
        else if (at < weight2)
            sum += d_sum(m, s, at - bias1);
        else if (at < bias2)
            sum += d_out * m.activations[s * m.hidden + at - weight2];
        else if (at == bias2)
            sum += d_out;
        else
            sum += m.errors[s] * m.errors[s] / m.batch;
    }
    m.gradients[at] = sum;
}

__global__ void update(float* parameters, float* momentum, const float* gradients, int count,
                       float rate, float mu) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= count) return;
    momentum[at] = mu * momentum[at] + gradients[at];
    parameters[at] -= rate * momentum[at];
}

}  // namespace

cudaError_t launch_gradients(const MlpDevice& m) {
    hidden_layer<<<blocks_for(m.batch * m.hidden), kThreads>>>(m);
    output_layer<<<blocks_for(m.batch), kThreads>>>(m);
    gradients<<<blocks_for(m.hidden * (m.inputs + 2) + 3), kThreads>>>(m);
    return cudaGetLastError();
}

cudaError_t launch_update(float* parameters, float* momentum, const float* gradients, int count,
                          float rate, float mu) {
    update<<<blocks_for(count), kThreads>>>(parameters, momentum, gradients, count, rate, mu);
    return cudaGetLastError();
}

}  // namespace example
