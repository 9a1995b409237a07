// The perceptron on the CPU, and what both versions share: names and initial values.
#include <cmath>
#include <type_traits>

#include "examples/mlp.h"
#include "examples/mlp_loops.h"
#include "examples/random.h"

namespace example {

using ddprun::Result;
using ddprun::trainer::BFloat16;
using ddprun::trainer::data_type;
using ddprun::trainer::DataType;
using ddprun::trainer::GradientReducer;
using ddprun::trainer::Half;
using ddprun::trainer::NamedBuffer;

namespace {

float* floats(const ddprun::trainer::Buffer& buffer) { return static_cast<float*>(buffer.data); }

// Where backward adds up one gradient of type T: in the reducer's memory, or, for a type of 16
// bits, in floats, whose sum is rounded once.
template <class T>
class GradientSum {
  public:
    explicit GradientSum(const ddprun::trainer::Buffer& gradient) : gradient_(gradient) {
        if constexpr (!std::is_same_v<T, float>) sum_.resize(gradient.count);
    }
    float* values() {
        if constexpr (std::is_same_v<T, float>) return floats(gradient_);
        return sum_.data();
    }
    void add_to_gradient() const {
        T* values = static_cast<T*>(gradient_.data);
        for (std::size_t i = 0; i < sum_.size(); ++i)
            values[i] = static_cast<T>(static_cast<float>(values[i]) + sum_[i]);
    }

  private:
    const ddprun::trainer::Buffer gradient_;
    std::vector<float> sum_;  // empty for floats
};

// T: of parameters and gradients.
template <class T>
class CpuMlp final : public Mlp {
  public:
    CpuMlp(const MlpShape& shape, std::span<const float> parameters)
        : shape_(shape),
          inputs_(static_cast<std::size_t>(shape.inputs)),
          hidden_(static_cast<std::size_t>(shape.hidden)) {
        for (float value : parameters) parameters_.push_back(static_cast<T>(value));
    }

    std::vector<NamedBuffer> parameters() override {
        return named_parts(shape_, parameters_.data(), "", data_type<T>());
    }
    std::vector<NamedBuffer> momenta() override {
        make_momenta();
        return named_parts(shape_, momenta_.data(), "momentum.");
    }

    Result<float> forward(std::span<const float> x, std::span<const float> y) override {
        if constexpr (!std::is_same_v<T, float>)
            wide_.assign(parameters_.begin(), parameters_.end());
        // backward() reads the inputs again, where they are.
        x_ = x;
        errors_.resize(y.size());
        activations_.resize(y.size() * hidden_);
        predict(numbers(), x.data(), samples(), activations_.data(), errors_.data());
        float loss = 0;
        for (std::size_t sample = 0; sample < y.size(); ++sample) {
            errors_[sample] -= y[sample];
            loss += errors_[sample] * errors_[sample] / static_cast<float>(y.size());
        }
        return loss;
    }

    Result<void> backward(GradientReducer& reducer, float scale) override {
        // The derivatives of the scaled loss with respect to the predictions.
        slopes_.resize(errors_.size());
        for (std::size_t sample = 0; sample < errors_.size(); ++sample)
            slopes_[sample] = scale * (2 * errors_[sample] / static_cast<float>(errors_.size()));
        // The output layer is reported as ready before the hidden layer is computed. So its
        // communication can overlap with that computation.
        if (auto done = layer(reducer, 2, &CpuMlp::output_layer); !done) return done;
        return layer(reducer, 0, &CpuMlp::hidden_layer);
    }

    // The momenta lie one after the other.
    Result<void> update(std::span<const NamedBuffer> weights,
                        std::span<const NamedBuffer> gradients, float rate,
                        float momentum) override {
        make_momenta();
        std::size_t at = 0;
        for (std::size_t parameter = 0; parameter < weights.size(); ++parameter) {
            const auto& values = weights[parameter].buffer;
            descend(floats(values), &momenta_[at], floats(gradients[parameter].buffer),
                    static_cast<long>(values.count), rate, momentum);
            at += values.count;
        }
        return {};
    }

  private:
    // Only for those who want them: an optimizer outside has its own.
    void make_momenta() { momenta_.resize(parameters_.size()); }

    using Layer = void (CpuMlp::*)(float* d_weights, float* d_biases) const;

    // The gradients of a layer, whose weights are parameter `first` and whose biases are the next.
    Result<void> layer(GradientReducer& reducer, std::size_t first, Layer compute) {
        GradientSum<T> weights(reducer.gradient(first)), biases(reducer.gradient(first + 1));
        (this->*compute)(weights.values(), biases.values());
        weights.add_to_gradient();
        biases.add_to_gradient();
        if (auto done = reducer.ready(first + 1); !done) return done;
        return reducer.ready(first);
    }

    // The parameters as floats. Their layout: W1, b1, w2, b2.
    const float* first() const {
        if constexpr (std::is_same_v<T, float>) return parameters_.data();
        return wide_.data();
    }
    MlpNumbers numbers() const {
        const float* first_bias = first() + hidden_ * inputs_;
        const float* second = first_bias + hidden_;
        return {shape_.inputs, shape_.hidden, first(), first_bias, second, second[hidden_]};
    }
    long samples() const { return static_cast<long>(errors_.size()); }

    // Both functions add to the gradients, so that a step may consist of several batches.
    void output_layer(float* d_weights, float* d_bias) const {
        add_output_gradients(numbers(), activations_.data(), slopes_.data(), samples(), d_weights,
                             d_bias);
    }
    void hidden_layer(float* d_weights, float* d_biases) const {
        add_hidden_gradients(numbers(), x_.data(), activations_.data(), slopes_.data(), samples(),
                             d_weights, d_biases);
    }

    const MlpShape shape_;
    const std::size_t inputs_, hidden_;
    std::vector<T> parameters_;
    std::vector<float> wide_;  // parameters_ as floats at the last forward(); empty for floats
    std::vector<float> momenta_, activations_, errors_, slopes_;
    std::span<const float> x_;  // of the last forward()
};

}  // namespace

std::vector<NamedBuffer> named_parts(const MlpShape& shape, void* values, const std::string& prefix,
                                     DataType type) {
    char* at = static_cast<char*>(values);
    const auto hidden = static_cast<std::size_t>(shape.hidden);
    std::vector<NamedBuffer> parts;
    auto add = [&](const char* name, std::size_t count) {
        // Views: the reducer and the snapshots use the model's own memory.
        parts.push_back({prefix + name, {at, count, type}});
        at += parts.back().buffer.bytes();
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

std::unique_ptr<Mlp> make_cpu_mlp(const MlpShape& shape, std::span<const float> parameters,
                                  DataType type) {
    switch (type) {
        case DataType::bfloat16:
            return std::make_unique<CpuMlp<BFloat16>>(shape, parameters);
        case DataType::float16:
            return std::make_unique<CpuMlp<Half>>(shape, parameters);
        default:
            return std::make_unique<CpuMlp<float>>(shape, parameters);
    }
}

}  // namespace example
