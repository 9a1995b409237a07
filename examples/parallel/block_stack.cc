// The sums of a block, forward and backward. They run in a fixed order, so equal input gives equal
// bits.
#include "examples/parallel/block_stack.h"

#include <cmath>

#include "examples/random.h"
#include "trainer/worker/or_throw.h"

namespace example {

using ddprun::trainer::buffer_of;
using ddprun::trainer::Extents;
using ddprun::trainer::GradientReducer;
using ddprun::trainer::NamedBuffer;
using ddprun::trainer::or_throw;
using ddprun::trainer::slice_of;
using ddprun::trainer::Tensor;

namespace {

// The tensors of a block, in the order of parameters_.
enum Kind : std::size_t { up, up_bias, down, down_bias, kinds };
constexpr const char* kNames[] = {"up", "up_bias", "down", "down_bias"};

std::string name_of(std::size_t block, std::size_t kind) {
    return "blocks." + std::to_string(block) + "." + kNames[kind];
}

// Elements of a tensor for each hidden unit; down_bias has none of these.
std::size_t row(std::size_t kind) { return kind == up_bias ? 1 : kWidth; }

// The range of the first values. The sum of a unit stays where tanh is not flat; biases begin at 0.
float range_of(std::size_t kind) {
    if (kind == up) return 1 / std::sqrt(static_cast<float>(kWidth));
    return kind == down ? 1 / std::sqrt(static_cast<float>(kHidden)) : 0;
}

// to += factor * from, for kWidth elements.
void add_scaled(float* to, float factor, const float* from) {
    for (std::size_t i = 0; i < kWidth; ++i) to[i] += factor * from[i];
}

// In eight sums, which the processor adds at the same time.
float dot(const float* a, const float* b) {
    float sums[8] = {}, sum = 0;
    for (std::size_t i = 0; i < kWidth; i += 8)
        for (std::size_t j = 0; j < 8; ++j) sums[j] += a[i + j] * b[i + j];
    for (float part : sums) sum += part;
    return sum;
}

}  // namespace

BlockStack::BlockStack(const Cut& cut) : cut_(cut) {
    for (std::size_t block = cut.first_block; block < cut.end_block; ++block) {
        for (std::size_t kind = 0; kind < kinds; ++kind) {
            std::vector<float> values(kind == down_bias ? kWidth : hidden() * row(kind));
            const std::size_t first = kind == down_bias ? 0 : cut.first_hidden * row(kind);
            for (std::size_t i = 0; i < values.size(); ++i)
                values[i] = range_of(kind) * uniform(block * kinds + kind, first + i);
            momenta_.emplace_back(values.size());
            parameters_.push_back(std::move(values));
        }
    }
}

std::vector<NamedBuffer> BlockStack::parameters() {
    std::vector<NamedBuffer> all;
    for (std::size_t i = 0; i < parameters_.size(); ++i)
        all.push_back({name_of(cut_.first_block + i / kinds, i % kinds),
                       buffer_of(std::span(parameters_[i]))});
    return all;
}

std::vector<Tensor> BlockStack::slices() {
    std::vector<Tensor> all;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
        const std::size_t kind = i % kinds;
        Extents whole{kHidden}, offset{cut_.first_hidden}, shape{hidden()};
        if (kind == down_bias) {
            whole = shape = {kWidth};
            offset = {0};
        } else if (kind != up_bias) {
            whole.push_back(kWidth);
            offset.push_back(0);
            shape.push_back(kWidth);
        }
        const std::string name = name_of(cut_.first_block + i / kinds, kind);
        all.push_back(slice_of(name, whole, offset, shape, std::span(parameters_[i])));
        all.push_back(slice_of("momentum." + name, whole, offset, shape, std::span(momenta_[i])));
    }
    return all;
}

Pass BlockStack::forward(std::vector<float> input, const Sum& sum) const {
    Pass pass;
    pass.output = std::move(input);
    for (std::size_t at = 0; at < parameters_.size(); at += kinds) {
        const auto* p = &parameters_[at];
        std::vector<float> x = std::move(pass.output), y(x.size());
        const std::size_t samples = x.size() / kWidth;
        std::vector<float> units(samples * hidden());
        for (std::size_t s = 0; s < samples; ++s) {
            for (std::size_t h = 0; h < hidden(); ++h) {
                float& unit = units[s * hidden() + h];
                unit = std::tanh(p[up_bias][h] + dot(&p[up][h * kWidth], &x[s * kWidth]));
                add_scaled(&y[s * kWidth], unit, &p[down][h * kWidth]);
            }
        }
        if (sum) sum(y);
        // After the sum, so that they count once.
        for (std::size_t i = 0; i < y.size(); ++i) y[i] += x[i] + p[down_bias][i % kWidth];
        pass.inputs.push_back(std::move(x));
        pass.hidden.push_back(std::move(units));
        pass.output = std::move(y);
    }
    return pass;
}

std::vector<float> BlockStack::backward(const Pass& pass, std::vector<float> slope, const Sum& sum,
                                        GradientReducer& reducer) const {
    for (std::size_t at = parameters_.size(); at > 0;) {
        at -= kinds;
        const auto* p = &parameters_[at];
        auto gradient = [&](std::size_t kind) {
            return static_cast<float*>(reducer.gradient(at + kind).data);
        };
        float *d_up = gradient(up), *d_up_bias = gradient(up_bias), *d_down = gradient(down),
              *d_down_bias = gradient(down_bias);
        const auto &x = pass.inputs[at / kinds], &units = pass.hidden[at / kinds];
        std::vector<float> below(slope.size());
        for (std::size_t s = 0; s * kWidth < slope.size(); ++s) {
            const float* out = &slope[s * kWidth];
            add_scaled(d_down_bias, 1, out);
            for (std::size_t h = 0; h < hidden(); ++h) {
                const float unit = units[s * hidden() + h];
                add_scaled(&d_down[h * kWidth], unit, out);
                // The derivative of tanh is 1 - tanh².
                const float d = dot(&p[down][h * kWidth], out) * (1 - unit * unit);
                d_up_bias[h] += d;
                add_scaled(&d_up[h * kWidth], d, &x[s * kWidth]);
                add_scaled(&below[s * kWidth], d, &p[up][h * kWidth]);
            }
        }
        for (std::size_t kind = kinds; kind-- > 0;) or_throw(reducer.ready(at + kind));
        if (sum) sum(below);
        for (std::size_t i = 0; i < slope.size(); ++i) slope[i] += below[i];
    }
    return slope;
}

void BlockStack::update(const GradientReducer& reducer, float rate) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
        const auto* gradient = static_cast<const float*>(reducer.gradient(i).data);
        for (std::size_t j = 0; j < parameters_[i].size(); ++j) {
            momenta_[i][j] = 0.9f * momenta_[i][j] + gradient[j];
            parameters_[i][j] -= rate * momenta_[i][j];
        }
    }
}

}  // namespace example
