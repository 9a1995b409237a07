// The GPT on the CPU: which kernel runs on which memory, forward and backward.
#include <cstring>

#include "examples/gpt/cpu_kernels.h"
#include "examples/gpt/gpt_model.h"

namespace example::gpt {
namespace {

using ddprun::Result;
using ddprun::trainer::GradientReducer;
using ddprun::trainer::NamedBuffer;

// What forward() of a layer keeps for backward(). M: positions of the batch, C: width.
struct LayerMemory {
    std::vector<float> in;                      // M × C; the residual stream before the layer
    std::vector<float> norm1, mean1, rstd1;     // M × C, M, M
    std::vector<float> qkv, shares, attention;  // M × 3C; rows × heads × length²; M × C
    std::vector<float> middle;                  // M × C; the residual stream after attention
    std::vector<float> norm2, mean2, rstd2;     // M × C, M, M
    std::vector<float> up, gelu;                // M × 4C
};

class CpuGpt final : public Gpt {
  public:
    CpuGpt(const GptShape& shape, std::span<const float> parameters)
        : shape_(shape),
          tensors_(tensors(shape)),
          values_(parameters.begin(), parameters.end()),
          moments_(2 * values_.size()),
          layers_(static_cast<std::size_t>(shape.layers)) {}

    const GptShape& shape() const override { return shape_; }
    std::vector<NamedBuffer> parameters() override {
        return named_tensors(shape_, values_.data(), "");
    }
    std::vector<NamedBuffer> moments() override { return named_moments(shape_, moments_.data()); }

    Result<double> forward(const Batch& batch, float share) override {
        run(batch.tokens, batch.rows, batch.length);
        targets_ = batch.targets;
        losses_.resize(batch.positions());
        k_.cross_entropy(logits_.data(), losses_.data(), targets_.data(), positions_,
                         shape_.vocabulary, share / static_cast<float>(positions_));
        double sum = 0;
        for (float loss : losses_) sum += static_cast<double>(loss);
        return sum / static_cast<double>(positions_);
    }

    Result<void> backward(GradientReducer& reducer) override {
        prepare_backward();
        output_backward(reducer);
        if (auto done = ready(reducer, last_norm(shape_), last_norm(shape_) + 1); !done)
            return done;
        for (int layer = shape_.layers; layer-- > 0;) {
            if (auto done = mlp_backward(reducer, layer); !done) return done;
            if (auto done = attention_backward(reducer, layer); !done) return done;
        }
        k_.embed_backward(gradient(reducer, kTokens), gradient(reducer, kPositions), tokens_.data(),
                          d_.data(), positions_, length_, shape_.width);
        return ready(reducer, kTokens, kPositions);
    }

    Result<void> update(const GradientReducer& reducer, const AdamOptions& options) override {
        for (std::size_t i = 0; i < tensors_.size(); ++i) {
            const auto& tensor = tensors_[i];
            float* first = &moments_[tensor.offset];
            k_.adam(&values_[tensor.offset], first, first + values_.size(), gradient(reducer, i),
                    static_cast<long>(tensor.count), adam_step(options, tensor));
        }
        return {};
    }

    Result<std::vector<float>> next(std::span<const int> tokens) override {
        run({tokens.begin(), tokens.end()}, 1, static_cast<int>(tokens.size()));
        return std::vector<float>(logits_.end() - shape_.vocabulary, logits_.end());
    }

  private:
    long width() const { return shape_.width; }
    const float* value(std::size_t tensor) const { return &values_[tensors_[tensor].offset]; }
    static float* gradient(const GradientReducer& reducer, std::size_t tensor) {
        return static_cast<float*>(reducer.gradient(tensor).data);
    }
    // The last parameter first, as the buckets expect it.
    static Result<void> ready(GradientReducer& reducer, std::size_t first, std::size_t last) {
        for (std::size_t i = last + 1; i-- > first;)
            if (auto done = reducer.ready(i); !done) return done;
        return {};
    }

    // Memory grows with the largest batch and stays.
    float* sized(std::vector<float>& memory, long count) const {
        memory.resize(static_cast<std::size_t>(count));
        return memory.data();
    }

    // out = in × weight + bias, for a layer of the network.
    void linear(const float* in, long inputs, std::size_t weight, long outputs, float* out,
                bool add = false) const {
        k_.multiply({.left = {in, inputs},
                     .right = {value(weight), outputs},
                     .rows = positions_,
                     .columns = outputs,
                     .depth = inputs,
                     .out = out,
                     .out_row = outputs,
                     .bias = value(weight + 1),
                     .add = add});
    }

    // The gradients of weight and bias, and d_in (set, not added).
    void linear_backward(GradientReducer& reducer, const float* in, long inputs, std::size_t weight,
                         long outputs, const float* d_out, float* d_in) const {
        k_.multiply({.left = {d_out, outputs},
                     .right = Matrix{value(weight), outputs}.transposed(),
                     .rows = positions_,
                     .columns = inputs,
                     .depth = outputs,
                     .out = d_in,
                     .out_row = inputs});
        k_.multiply({.left = Matrix{in, inputs}.transposed(),
                     .right = {d_out, outputs},
                     .rows = inputs,
                     .columns = outputs,
                     .depth = positions_,
                     .out = gradient(reducer, weight),
                     .out_row = outputs,
                     .add = true});
        k_.add_rows(gradient(reducer, weight + 1), d_out, positions_, outputs);
    }

    LayerNorm norm(const float* in, std::size_t weight, std::vector<float>& mean,
                   std::vector<float>& rstd) const {
        return {positions_,
                width(),
                in,
                value(weight),
                value(weight + 1),
                sized(mean, positions_),
                sized(rstd, positions_)};
    }

    Attention attention_of(LayerMemory& m) const {
        return {rows_,        length_,        shape_.heads, width() / shape_.heads,
                m.qkv.data(), m.shares.data()};
    }

    // All layers, up to the logits.
    void run(std::vector<int> tokens, int rows, int length) {
        tokens_ = std::move(tokens);
        rows_ = rows;
        length_ = length;
        positions_ = static_cast<long>(tokens_.size());
        const long stream = positions_ * width();
        k_.embed(sized(layers_[0].in, stream), tokens_.data(), value(kTokens), value(kPositions),
                 positions_, length_, width());
        for (int layer = 0; layer < shape_.layers; ++layer) {
            auto& next =
                layer + 1 < shape_.layers ? layers_[static_cast<std::size_t>(layer) + 1].in : out_;
            forward_layer(layer, sized(next, stream));
        }
        const auto final_norm = norm(out_.data(), last_norm(shape_), mean_, rstd_);
        k_.layer_norm(final_norm, sized(norm_, stream));
        k_.multiply({.left = {norm_.data(), width()},
                     .right = Matrix{value(kTokens), width()}.transposed(),
                     .rows = positions_,
                     .columns = shape_.vocabulary,
                     .depth = width(),
                     .out = sized(logits_, positions_ * shape_.vocabulary),
                     .out_row = shape_.vocabulary});
    }

    void forward_layer(int layer, float* out) {
        auto& m = layers_[static_cast<std::size_t>(layer)];
        const long stream = positions_ * width();
        const auto bytes = static_cast<std::size_t>(stream) * sizeof(float);
        k_.layer_norm(norm(m.in.data(), part_at(layer, norm1_weight), m.mean1, m.rstd1),
                      sized(m.norm1, stream));
        linear(m.norm1.data(), width(), part_at(layer, qkv_weight), 3 * width(),
               sized(m.qkv, 3 * stream));
        sized(m.shares, rows_ * shape_.heads * length_ * length_);
        k_.attention(attention_of(m), sized(m.attention, stream));
        std::memcpy(sized(m.middle, stream), m.in.data(), bytes);
        linear(m.attention.data(), width(), part_at(layer, attention_weight), width(),
               m.middle.data(), true);
        k_.layer_norm(norm(m.middle.data(), part_at(layer, norm2_weight), m.mean2, m.rstd2),
                      sized(m.norm2, stream));
        linear(m.norm2.data(), width(), part_at(layer, up_weight), 4 * width(),
               sized(m.up, 4 * stream));
        k_.gelu(sized(m.gelu, 4 * stream), m.up.data(), 4 * stream);
        std::memcpy(out, m.middle.data(), bytes);
        linear(m.gelu.data(), 4 * width(), part_at(layer, down_weight), width(), out, true);
    }

    void prepare_backward() {
        const long stream = positions_ * width();
        sized(d_, stream);
        sized(d_narrow_, stream);
        sized(d_wide_, 4 * stream);
        sized(scores_, rows_ * shape_.heads * length_ * length_);
    }

    // Logits and last norm. Leaves the derivatives of the residual stream in d_.
    void output_backward(GradientReducer& reducer) {
        const long words = shape_.vocabulary;
        k_.multiply({.left = {logits_.data(), words},
                     .right = {value(kTokens), width()},
                     .rows = positions_,
                     .columns = width(),
                     .depth = words,
                     .out = d_narrow_.data(),
                     .out_row = width()});
        k_.multiply({.left = Matrix{logits_.data(), words}.transposed(),
                     .right = {norm_.data(), width()},
                     .rows = words,
                     .columns = width(),
                     .depth = positions_,
                     .out = gradient(reducer, kTokens),
                     .out_row = width(),
                     .add = true});
        std::memset(d_.data(), 0, d_.size() * sizeof(float));
        const auto at = last_norm(shape_);
        k_.layer_norm_backward(norm(out_.data(), at, mean_, rstd_), d_narrow_.data(), d_.data(),
                               gradient(reducer, at), gradient(reducer, at + 1));
    }

    // The residual stream passes its derivatives on unchanged; each half of a layer adds its own.
    Result<void> mlp_backward(GradientReducer& reducer, int layer) {
        auto& m = layers_[static_cast<std::size_t>(layer)];
        const auto up = part_at(layer, up_weight), norm2 = part_at(layer, norm2_weight);
        linear_backward(reducer, m.gelu.data(), 4 * width(), part_at(layer, down_weight), width(),
                        d_.data(), d_wide_.data());
        k_.gelu_backward(d_wide_.data(), m.up.data(), d_wide_.data(), 4 * positions_ * width());
        linear_backward(reducer, m.norm2.data(), width(), up, 4 * width(), d_wide_.data(),
                        d_narrow_.data());
        k_.layer_norm_backward(norm(m.middle.data(), norm2, m.mean2, m.rstd2), d_narrow_.data(),
                               d_.data(), gradient(reducer, norm2), gradient(reducer, norm2 + 1));
        return ready(reducer, norm2, part_at(layer, down_bias));
    }

    Result<void> attention_backward(GradientReducer& reducer, int layer) {
        auto& m = layers_[static_cast<std::size_t>(layer)];
        const auto norm1 = part_at(layer, norm1_weight);
        linear_backward(reducer, m.attention.data(), width(), part_at(layer, attention_weight),
                        width(), d_.data(), d_narrow_.data());
        k_.attention_backward(attention_of(m), d_narrow_.data(), d_wide_.data(), scores_.data());
        linear_backward(reducer, m.norm1.data(), width(), part_at(layer, qkv_weight), 3 * width(),
                        d_wide_.data(), d_narrow_.data());
        k_.layer_norm_backward(norm(m.in.data(), norm1, m.mean1, m.rstd1), d_narrow_.data(),
                               d_.data(), gradient(reducer, norm1), gradient(reducer, norm1 + 1));
        return ready(reducer, norm1, part_at(layer, attention_bias));
    }

    const CpuKernels& k_ = cpu_kernels();
    const GptShape shape_;
    const std::vector<Tensor> tensors_;
    std::vector<float> values_, moments_;
    // Of the last forward().
    std::vector<int> tokens_, targets_;
    long rows_ = 0, length_ = 0, positions_ = 0;
    std::vector<LayerMemory> layers_;
    std::vector<float> out_, norm_, mean_, rstd_;  // residual stream at the end, and its norm
    std::vector<float> logits_;                    // after forward(): their derivatives
    std::vector<float> losses_;
    // Derivatives of the residual stream, of something M × C, of something M × 4C, of the scores.
    std::vector<float> d_, d_narrow_, d_wide_, scores_;
};

}  // namespace

std::unique_ptr<Gpt> make_cpu_gpt(const GptShape& shape, std::span<const float> parameters) {
    return std::make_unique<CpuGpt>(shape, parameters);
}

}  // namespace example::gpt
