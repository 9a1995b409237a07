// Plain loops, which the compiler turns into vectors. All samples of a batch use a block of hidden
// units, whose weights stay in the cache meanwhile, before they go on to the next one.
#include "examples/mlp_loops.h"

#include <math.h>

namespace example {
namespace {

constexpr long kBlock = 256;  // hidden units; 16 KB of weights for 16 inputs

// Calls f(first, end) for each block of hidden units.
template <class F>
void each_block(long hidden, F f) {
    for (long first = 0; first < hidden; first += kBlock)
        f(first, first + kBlock < hidden ? first + kBlock : hidden);
}

}  // namespace

void predict(const MlpNumbers& net, const float* x, long samples, float* activations,
             float* predictions) {
    const long inputs = net.inputs, hidden = net.hidden;
    for (long s = 0; s < samples; ++s) predictions[s] = net.b2;
    each_block(hidden, [&](long first, long end) {
        for (long s = 0; s < samples; ++s) {
            const float* in = x + s * inputs;
            float* a = activations + s * hidden;
            for (long h = first; h < end; ++h) {
                const float* row = net.w1 + h * inputs;
                float sum = net.b1[h];
                for (long i = 0; i < inputs; ++i) sum += row[i] * in[i];
                a[h] = sum;
            }
            // A loop of its own: only so it is a loop over vectors.
            for (long h = first; h < end; ++h) a[h] = tanhf(a[h]);
            float out = 0;
            for (long h = first; h < end; ++h) out += net.w2[h] * a[h];
            predictions[s] += out;
        }
    });
}

void add_output_gradients(const MlpNumbers& net, const float* activations, const float* slopes,
                          long samples, float* d_w2, float* d_b2) {
    each_block(net.hidden, [&](long first, long end) {
        for (long s = 0; s < samples; ++s) {
            const float* a = activations + s * net.hidden;
            const float slope = slopes[s];
            for (long h = first; h < end; ++h) d_w2[h] += slope * a[h];
        }
    });
    for (long s = 0; s < samples; ++s) *d_b2 += slopes[s];
}

void add_hidden_gradients(const MlpNumbers& net, const float* x, const float* activations,
                          const float* slopes, long samples, float* d_w1, float* d_b1) {
    const long inputs = net.inputs;
    each_block(net.hidden, [&](long first, long end) {
        for (long s = 0; s < samples; ++s) {
            const float* in = x + s * inputs;
            const float* a = activations + s * net.hidden;
            for (long h = first; h < end; ++h) {
                // The derivative of tanh is 1 - tanh².
                const float slope = slopes[s] * net.w2[h] * (1 - a[h] * a[h]);
                d_b1[h] += slope;
                float* row = d_w1 + h * inputs;
                for (long i = 0; i < inputs; ++i) row[i] += slope * in[i];
            }
        }
    });
}

void descend(float* values, float* momenta, const float* gradients, long count, float rate,
             float momentum) {
    for (long i = 0; i < count; ++i) {
        momenta[i] = momentum * momenta[i] + gradients[i];
        values[i] -= rate * momenta[i];
    }
}

}  // namespace example
