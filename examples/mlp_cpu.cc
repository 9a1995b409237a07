// The perceptron on the CPU, and what both versions share: names and initial values.
#include <cmath>

#include "examples/mlp.h"
#include "examples/random.h"

namespace example {

using ddprun::Result;
using ddprun::trainer::GradientReducer;
using ddprun::trainer::NamedBuffer;

namespace {

float* floats(const ddprun::trainer::Buffer& buffer) { return static_cast<float*>(buffer.data); }

// Plain loops in one fixed order.
class CpuMlp final : public Mlp {
  public:
    CpuMlp(const MlpShape& shape, std::span<const float> parameters)
        : shape_(shape),
          inputs_(static_cast<std::size_t>(shape.inputs)),
          hidden_(static_cast<std::size_t>(shape.hidden)),
          parameters_(parameters.begin(), parameters.end()) {}

    std::vector<NamedBuffer> parameters() override {
        return named_parts(shape_, parameters_.data(), "");
    }
    std::vector<NamedBuffer> momenta() override {
        make_momenta();
        return named_parts(shape_, momenta_.data(), "momentum.");
    }

    Result<float> forward(std::span<const float> x, std::span<const float> y) override {
        // backward() reads the inputs again, where they are.
        x_ = x;
        errors_.resize(y.size());
        activations_.resize(y.size() * hidden_);
        float loss = 0;
        for (std::size_t sample = 0; sample < y.size(); ++sample) {
            errors_[sample] =
                predict(&x[sample * inputs_], &activations_[sample * hidden_]) - y[sample];
            loss += errors_[sample] * errors_[sample] / static_cast<float>(y.size());
        }
        return loss;
    }

    Result<void> backward(GradientReducer& reducer) override {
        // The output layer is reported as ready before the hidden layer is computed. So its
        // communication can overlap with that computation.
        output_layer(floats(reducer.gradient(2)), floats(reducer.gradient(3)));
        for (std::size_t parameter : {3, 2})
            if (auto done = reducer.ready(parameter); !done) return done;
        hidden_layer(floats(reducer.gradient(0)), floats(reducer.gradient(1)));
        for (std::size_t parameter : {1, 0})
            if (auto done = reducer.ready(parameter); !done) return done;
        return {};
    }

    // The gradients lie in buckets, the parameters and momenta one after the other.
    Result<void> update(const GradientReducer& reducer, float rate, float momentum) override {
        make_momenta();
        std::size_t at = 0;
        for (std::size_t parameter = 0; parameter < 4; ++parameter) {
            const auto gradient = reducer.gradient(parameter);
            for (std::size_t i = 0; i < gradient.count; ++i, ++at) {
                momenta_[at] = momentum * momenta_[at] + floats(gradient)[i];
                parameters_[at] -= rate * momenta_[at];
            }
        }
        return {};
    }

  private:
    // Only for those who want them: an optimizer outside has its own.
    void make_momenta() { momenta_.resize(parameters_.size()); }

    // The layout of parameters_: W1, b1, w2, b2.
    const float* first_bias() const { return &parameters_[hidden_ * inputs_]; }
    const float* second() const { return first_bias() + hidden_; }

    // The prediction for one sample. Stores the hidden layer's activations for backward().
    float predict(const float* x, float* activations) const {
        float out = second()[hidden_];
        for (std::size_t h = 0; h < hidden_; ++h) {
            float sum = first_bias()[h];
            for (std::size_t i = 0; i < inputs_; ++i) sum += parameters_[h * inputs_ + i] * x[i];
            activations[h] = std::tanh(sum);
            out += second()[h] * activations[h];
        }
        return out;
    }

    // The derivative of the loss with respect to a sample's prediction.
    float slope(std::size_t sample) const {
        return 2 * errors_[sample] / static_cast<float>(errors_.size());
    }

    // Both functions add to the gradients, so that a step may consist of several batches.
    void output_layer(float* d_weights, float* d_bias) const {
        for (std::size_t sample = 0; sample < errors_.size(); ++sample) {
            const float d_out = slope(sample);
            for (std::size_t h = 0; h < hidden_; ++h)
                d_weights[h] += d_out * activations_[sample * hidden_ + h];
            *d_bias += d_out;
        }
    }

    void hidden_layer(float* d_weights, float* d_biases) const {
        for (std::size_t sample = 0; sample < errors_.size(); ++sample) {
            const float* x = &x_[sample * inputs_];
            const float d_out = slope(sample);
            for (std::size_t h = 0; h < hidden_; ++h) {
                const float a = activations_[sample * hidden_ + h];
                // The derivative of tanh is 1 - tanh².
                const float d_sum = d_out * second()[h] * (1 - a * a);
                d_biases[h] += d_sum;
                for (std::size_t i = 0; i < inputs_; ++i)
                    d_weights[h * inputs_ + i] += d_sum * x[i];
            }
        }
    }

    const MlpShape shape_;
    const std::size_t inputs_, hidden_;
    std::vector<float> parameters_, momenta_, activations_, errors_;
    std::span<const float> x_;  // of the last forward()
};

}  // namespace

std::vector<NamedBuffer> named_parts(const MlpShape& shape, float* values,
                                     const std::string& prefix) {
    const auto hidden = static_cast<std::size_t>(shape.hidden);
    std::vector<NamedBuffer> parts;
    auto add = [&](const char* name, std::size_t count) {
        // Views: the reducer and the snapshots use the model's own memory.
        parts.push_back({prefix + name, {values, count, ddprun::trainer::DataType::float32}});
        values += count;
    };
    add("w1", hidden * static_cast<std::size_t>(shape.inputs));
    add("b1", hidden);
    add("w2", hidden);
    add("b2", 1);
    return parts;
}

std::vector<float> initial_parameters(const MlpShape& shape, std::uint64_t seed) {
    std::vector<float> values(shape.parameters());
    const std::size_t hidden = static_cast<std::size_t>(shape.hidden);
    const std::size_t first = hidden * static_cast<std::size_t>(shape.inputs);
    // The sum of a hidden unit stays small, however many inputs it has. There tanh is not flat.
    const float range1 = 1 / std::sqrt(static_cast<float>(shape.inputs));
    const float range2 = 1 / std::sqrt(static_cast<float>(shape.hidden));
    for (std::size_t i = 0; i < first; ++i) values[i] = range1 * uniform(seed, i);
    // All biases start at 0: the gaps that this loop and the one above leave.
    for (std::size_t i = first + hidden; i + 1 < values.size(); ++i)
        values[i] = range2 * uniform(seed, i);
    return values;
}

std::unique_ptr<Mlp> make_cpu_mlp(const MlpShape& shape, std::span<const float> parameters) {
    return std::make_unique<CpuMlp>(shape, parameters);
}

}  // namespace example
