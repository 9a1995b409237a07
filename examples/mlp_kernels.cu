// The perceptron's kernels. One thread computes one element of the output.
#include "examples/mlp_kernels.h"

namespace example {
namespace {

constexpr int kThreads = 128;

constexpr int blocks_for(int count) { return (count + kThreads - 1) / kThreads; }

__device__ int own_index() { return blockIdx.x * blockDim.x + threadIdx.x; }

// The derivative of the loss with respect to a sample's prediction.
__device__ float slope(const MlpDevice& m, int sample) { return 2 * m.errors[sample] / m.batch; }

// One thread for each hidden unit of each sample.
__global__ void activate(MlpDevice m) {
    const int at = own_index();
    if (at < m.batch * m.hidden) m.activations[at] = tanhf(m.activations[at] + m.b1[at % m.hidden]);
}

// One thread for each sample.
__global__ void predict(MlpDevice m) {
    const int sample = own_index();
    if (sample >= m.batch) return;
    float out = *m.b2;
    for (int h = 0; h < m.hidden; ++h) out += m.w2[h] * m.activations[sample * m.hidden + h];
    m.errors[sample] = out - m.y[sample];
}

// A single thread: the order of the sum is fixed, and a batch is small.
__global__ void sum_loss(MlpDevice m) {
    float sum = 0;
    for (int s = 0; s < m.batch; ++s) sum += m.errors[s] * m.errors[s] / m.batch;
    *m.loss = sum;
}

// One thread for each element of w2, and one for b2.
__global__ void output_gradients(MlpDevice m, float* d_w2, float* d_b2) {
    const int h = own_index();
    if (h > m.hidden) return;
    float sum = 0;
    for (int s = 0; s < m.batch; ++s)
        sum += slope(m, s) * (h < m.hidden ? m.activations[s * m.hidden + h] : 1);
    *(h < m.hidden ? d_w2 + h : d_b2) += sum;
}

// One thread for each hidden unit. It overwrites the activations, so it must run after
// output_gradients.
__global__ void hidden_gradients(MlpDevice m, float* d_b1) {
    const int h = own_index();
    if (h >= m.hidden) return;
    float sum = 0;
    for (int s = 0; s < m.batch; ++s) {
        float& at = m.activations[s * m.hidden + h];
        at = slope(m, s) * m.w2[h] * (1 - at * at);
        sum += at;
    }
    d_b1[h] += sum;
}

// One thread for each parameter.
__global__ void update(float* parameters, float* momentum, const float* gradients, int count,
                       float rate, float mu) {
    const int at = own_index();
    if (at >= count) return;
    momentum[at] = mu * momentum[at] + gradients[at];
    parameters[at] -= rate * momentum[at];
}

}  // namespace

// The three kernels run one after the other, because all use the default stream.
cudaError_t launch_forward(const MlpDevice& m) {
    activate<<<blocks_for(m.batch * m.hidden), kThreads>>>(m);
    predict<<<blocks_for(m.batch), kThreads>>>(m);
    sum_loss<<<1, 1>>>(m);
    return cudaGetLastError();
}

cudaError_t launch_output_gradients(const MlpDevice& m, float* d_w2, float* d_b2) {
    output_gradients<<<blocks_for(m.hidden + 1), kThreads>>>(m, d_w2, d_b2);
    return cudaGetLastError();
}

cudaError_t launch_hidden_gradients(const MlpDevice& m, float* d_b1) {
    hidden_gradients<<<blocks_for(m.hidden), kThreads>>>(m, d_b1);
    return cudaGetLastError();
}

cudaError_t launch_update(float* parameters, float* momentum, const float* gradients, int count,
                          float rate, float mu) {
    update<<<blocks_for(count), kThreads>>>(parameters, momentum, gradients, count, rate, mu);
    return cudaGetLastError();
}

}  // namespace example
