// The layers of the CPU kernels without matrix products. Only cpu_kernels.cc includes this file.
// The loops are plain: the compiler makes vectors of them, and of tanhf and expf (libmvec).
#pragma once

namespace example::gpt {
namespace {

constexpr float kEpsilon = 1e-5f;  // of the layer norm

// Columns that a thread sums at a time, so that two threads do not write into one cache line.
constexpr long kColumns = 16;

void add_rows(float* out, const float* in, long rows, long width) {
#pragma omp parallel for
    for (long c0 = 0; c0 < width; c0 += kColumns * 4) {
        const long c1 = least(c0 + kColumns * 4, width);
        for (long r = 0; r < rows; ++r)
            for (long c = c0; c < c1; ++c) out[c] += in[r * width + c];
    }
}

void layer_norm(const LayerNorm& n, float* out) {
#pragma omp parallel for
    for (long r = 0; r < n.rows; ++r) {
        const float* in = n.in + r * n.width;
        float mean = 0, square = 0;
        for (long c = 0; c < n.width; ++c) mean += in[c];
        mean /= static_cast<float>(n.width);
        for (long c = 0; c < n.width; ++c) square += (in[c] - mean) * (in[c] - mean);
        const float rstd = 1 / sqrtf(square / static_cast<float>(n.width) + kEpsilon);
        for (long c = 0; c < n.width; ++c)
            out[r * n.width + c] = (in[c] - mean) * rstd * n.weight[c] + n.bias[c];
        n.mean[r] = mean;
        n.rstd[r] = rstd;
    }
}

// With x̂ = (x - mean) × rstd and g = d_out × weight: d_in = rstd × (g - mean(g) - x̂ mean(g x̂)).
void layer_norm_rows(const LayerNorm& n, const float* d_out, float* d_in) {
#pragma omp parallel for
    for (long r = 0; r < n.rows; ++r) {
        const float* in = n.in + r * n.width;
        const float* d = d_out + r * n.width;
        float* to = d_in + r * n.width;
        const float mean = n.mean[r], rstd = n.rstd[r];
        float sum = 0, sum_in = 0;
        for (long c = 0; c < n.width; ++c) {
            const float g = d[c] * n.weight[c];
            sum += g;
            sum_in += g * (in[c] - mean) * rstd;
        }
        sum /= static_cast<float>(n.width);
        sum_in /= static_cast<float>(n.width);
        for (long c = 0; c < n.width; ++c)
            to[c] += rstd * (d[c] * n.weight[c] - sum - (in[c] - mean) * rstd * sum_in);
    }
}

void layer_norm_backward(const LayerNorm& n, const float* d_out, float* d_in, float* d_weight,
                         float* d_bias) {
    layer_norm_rows(n, d_out, d_in);
#pragma omp parallel for
    for (long c0 = 0; c0 < n.width; c0 += kColumns * 4) {
        const long c1 = least(c0 + kColumns * 4, n.width);
        for (long r = 0; r < n.rows; ++r) {
            const float* in = n.in + r * n.width;
            const float* d = d_out + r * n.width;
            const float mean = n.mean[r], rstd = n.rstd[r];
            for (long c = c0; c < c1; ++c) {
                d_weight[c] += d[c] * (in[c] - mean) * rstd;
                d_bias[c] += d[c];
            }
        }
    }
}

constexpr float kGelu = 0.7978845608f, kCubic = 0.044715f;  // sqrt(2 / pi)

void gelu(float* out, const float* in, long count) {
    each(count, [=](long i) {
        const float x = in[i];
        out[i] = 0.5f * x * (1 + tanhf(kGelu * (x + kCubic * x * x * x)));
    });
}

void gelu_backward(float* d_in, const float* in, const float* d_out, long count) {
    each(count, [=](long i) {
        const float x = in[i];
        const float t = tanhf(kGelu * (x + kCubic * x * x * x));
        const float slope = kGelu * (1 + 3 * kCubic * x * x);
        d_in[i] = d_out[i] * 0.5f * (1 + t + x * (1 - t * t) * slope);
    });
}

void copy(float* out, const float* in, long count) {
    each(count, [=](long i) { out[i] = in[i]; });
}

void zero(float* out, long count) {
    each(count, [=](long i) { out[i] = 0; });
}

void embed(float* out, const int* tokens, const float* of_token, const float* of_position,
           long rows, long length, long width) {
#pragma omp parallel for
    for (long r = 0; r < rows; ++r) {
        const float* token = of_token + tokens[r] * width;
        const float* position = of_position + r % length * width;
        for (long c = 0; c < width; ++c) out[r * width + c] = token[c] + position[c];
    }
}

// Several rows have one position, so the threads divide the columns.
void embed_backward(float* d_of_token, float* d_of_position, const WordRows& words,
                    const float* d_out, long rows, long length, long width) {
#pragma omp parallel for
    for (long c0 = 0; c0 < width; c0 += kColumns) {
        const long c1 = least(c0 + kColumns, width);
        for (long word = 0; word < words.count; ++word) {
            float* token = d_of_token + words.words[word] * width;
            for (int i = words.begins[word]; i < words.begins[word + 1]; ++i)
                for (long c = c0; c < c1; ++c) token[c] += d_out[words.rows[i] * width + c];
        }
        for (long r = 0; r < rows; ++r) {
            float* position = d_of_position + r % length * width;
            for (long c = c0; c < c1; ++c) position[c] += d_out[r * width + c];
        }
    }
}

void cross_entropy(const Logits& l, float* losses, float scale) {
    const long words = l.words;
#pragma omp parallel for
    for (long r = 0; r < l.rows; ++r) {
        float* row = l.logits + r * l.row;
        float most = row[0], sum = 0;
        for (long w = 1; w < words; ++w) most = row[w] > most ? row[w] : most;
        const float at_target = row[l.targets[r]] - most;
        for (long w = 0; w < words; ++w) {
            row[w] = expf(row[w] - most);
            sum += row[w];
        }
        losses[r] = logf(sum) - at_target;
        for (long w = 0; w < words; ++w) row[w] *= scale / sum;
        row[l.targets[r]] -= scale;
        for (long w = words; w < l.row; ++w) row[w] = 0;
    }
}

// The order of the operations is PyTorch's.
void adam(float* values, float* first, float* second, const float* gradient, long count,
          const AdamStep& s) {
    const float size = s.rate / s.correction1;
    const float root = sqrtf(s.correction2);
    each(count, [=](long i) {
        const float g = gradient[i];
        const float value = values[i] * (1 - s.rate * s.decay);
        first[i] += (g - first[i]) * (1 - s.beta1);
        second[i] = second[i] * s.beta2 + (1 - s.beta2) * g * g;
        values[i] = value - size * first[i] / (sqrtf(second[i]) / root + s.epsilon);
    });
}

}  // namespace
}  // namespace example::gpt
