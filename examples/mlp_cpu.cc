#include <cmath>

#include "examples/mlp.h"
#include "examples/random.h"

namespace example {
namespace {

using ddprun::Result;

class CpuMlp final : public Mlp {
  public:
    explicit CpuMlp(const MlpShape& shape)
        : shape_(shape),
          parameters_(shape.parameters()),
          momentum_(shape.parameters()),
          gradients_(shape.parameters() + 2),
          hidden_(static_cast<std::size_t>(shape.hidden)) {}

    Result<std::vector<float>> parameters() const override { return parameters_; }
    Result<std::vector<float>> momentum() const override { return momentum_; }

    Result<void> restore(std::span<const float> parameters,
                         std::span<const float> momentum) override {
        parameters_.assign(parameters.begin(), parameters.end());
        momentum_.assign(momentum.begin(), momentum.end());
        return {};
    }

    Result<void> compute(std::span<const float> x, std::span<const float> y, float flag) override {
        std::fill(gradients_.begin(), gradients_.end(), 0.0f);
        const float scale = 1.0f / static_cast<float>(y.size());
        float loss = 0;
        for (std::size_t sample = 0; sample < y.size(); ++sample) {
            const float* in = &x[sample * static_cast<std::size_t>(shape_.inputs)];
            const float error = forward(in) - y[sample];
            loss += error * error * scale;
            backward(in, 2 * error * scale);
        }
        gradients_[parameters_.size()] = loss;
        gradients_[parameters_.size() + 1] = flag;
        return {};
    }

    ddprun::trainer::Buffer gradients() override {
        return ddprun::trainer::buffer_of(std::span(gradients_));
    }

    Result<Tail> tail() const override {
        return Tail{gradients_[parameters_.size()], gradients_[parameters_.size() + 1]};
    }

    Result<void> update(float rate, float momentum) override {
        for (std::size_t i = 0; i < parameters_.size(); ++i) {
            momentum_[i] = momentum * momentum_[i] + gradients_[i];
            parameters_[i] -= rate * momentum_[i];
        }
        return {};
    }

  private:
    const float* first_bias() const {
        return &parameters_[hidden_.size() * static_cast<std::size_t>(shape_.inputs)];
    }

    float forward(const float* in) {
        const std::size_t inputs = static_cast<std::size_t>(shape_.inputs), hidden = hidden_.size();
        const float* second = first_bias() + hidden;
        float out = second[hidden];
        for (std::size_t h = 0; h < hidden; ++h) {
            float sum = first_bias()[h];
            for (std::size_t i = 0; i < inputs; ++i) sum += parameters_[h * inputs + i] * in[i];
            hidden_[h] = std::tanh(sum);
            out += second[h] * hidden_[h];
        }
        return out;
    }

    void backward(const float* in, float d_out) {
        const std::size_t inputs = static_cast<std::size_t>(shape_.inputs), hidden = hidden_.size();
        const float* second = first_bias() + hidden;
        float* d_bias = &gradients_[hidden * inputs];
        float* d_second = d_bias + hidden;
        for (std::size_t h = 0; h < hidden; ++h) {
            d_second[h] += d_out * hidden_[h];
            const float d_sum = d_out * second[h] * (1 - hidden_[h] * hidden_[h]);
            d_bias[h] += d_sum;
            for (std::size_t i = 0; i < inputs; ++i) gradients_[h * inputs + i] += d_sum * in[i];
        }
        d_second[hidden] += d_out;
    }

    const MlpShape shape_;
    std::vector<float> parameters_, momentum_, gradients_, hidden_;
};

}  // namespace

std::vector<float> initial_parameters(const MlpShape& shape, std::uint64_t seed) {
    std::vector<float> values(shape.parameters());
    const std::size_t hidden = static_cast<std::size_t>(shape.hidden);
    const std::size_t first = hidden * static_cast<std::size_t>(shape.inputs);
    const float range1 = 1 / std::sqrt(static_cast<float>(shape.inputs));
    const float range2 = 1 / std::sqrt(static_cast<float>(shape.hidden));
    for (std::size_t i = 0; i < first; ++i) values[i] = range1 * uniform(seed, i);
    // The first layer's biases and the last one start at 0.
    for (std::size_t i = first + hidden; i + 1 < values.size(); ++i)
        values[i] = range2 * uniform(seed, i);
    return values;
}

std::unique_ptr<Mlp> make_cpu_mlp(const MlpShape& shape) { return std::make_unique<CpuMlp>(shape); }

}  // namespace example
