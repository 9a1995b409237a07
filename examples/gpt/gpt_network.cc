// The GPT: which kernel runs on which memory, forward and backward. The same for CPUs and GPUs, and
// for products of float32 and of bfloat16.
#include <bit>
#include <type_traits>

#include "examples/gpt/gpt_model.h"
#include "examples/gpt/network_memory.h"

namespace example::gpt {
namespace {

using ddprun::Result;
using ddprun::trainer::GradientReducer;
using ddprun::trainer::Memory;
using ddprun::trainer::NamedBuffer;

std::vector<float> widened(std::vector<float> values) { return values; }
std::vector<float> widened(const std::vector<Bfloat16>& values) {
    std::vector<float> all;
    for (auto value : values)
        all.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16));
    return all;
}

template <class T>
class Network final : public Gpt {
  public:
    Network(const GptShape& shape, const BasicKernels<T>& kernels, Memory memory)
        : k_(kernels), memory_(memory), shape_(shape), tensors_(tensors(shape)) {}

    // What can fail, and so is not in the constructor.
    Result<void> begin(std::span<const float> parameters) {
        if (auto done = values_.fill(memory_, parameters); !done) return done;
        const long count = static_cast<long>(parameters.size());
        if constexpr (kRounds)
            if (auto done = factors_.resize(memory_, count + padding()); !done) return done;
        return moments_.resize(memory_, 2 * count);
    }

    const GptShape& shape() const override { return shape_; }
    std::vector<NamedBuffer> parameters() override {
        // The caller may write to them.
        rounded_ = false;
        return named_tensors(shape_, values_.data(), "");
    }
    std::vector<NamedBuffer> moments() override { return named_moments(shape_, moments_.data()); }

    Result<double> forward(const Batch& batch, float share) override {
        // Copies to a GPU wait for its kernels, so they come before these.
        if (auto done = targets_.fill(memory_, batch.targets); !done) return done.error();
        if (auto done = words_.fill(memory_, batch.tokens, shape_.vocabulary); !done)
            return done.error();
        if (auto done = run(batch.tokens, batch.rows, batch.length); !done) return done.error();
        k_.cross_entropy(
            {positions_, shape_.vocabulary, m_.logits.data(), logits_row(), targets_.data()},
            m_.losses.data(), share / static_cast<float>(positions_));
        auto losses = m_.losses.on_host(0, positions_);
        if (!losses) return losses.error();
        double sum = 0;
        for (float loss : *losses) sum += static_cast<double>(loss);
        return sum / static_cast<double>(positions_);
    }

    Result<void> backward(GradientReducer& reducer) override {
        output_backward(reducer);
        if (auto done = ready(reducer, last_norm(shape_), last_norm(shape_) + 1); !done)
            return done;
        for (int layer = shape_.layers; layer-- > 0;) {
            if (auto done = mlp_backward(reducer, layer); !done) return done;
            if (auto done = attention_backward(reducer, layer); !done) return done;
        }
        k_.embed_backward(gradient(reducer, kTokens), gradient(reducer, kPositions), words_.view(),
                          m_.d.data(), positions_, length_, width());
        return ready(reducer, kTokens, kPositions);
    }

    Result<void> update(const GradientReducer& reducer, const AdamOptions& options) override {
        rounded_ = false;
        for (std::size_t i = 0; i < tensors_.size(); ++i) {
            const auto& tensor = tensors_[i];
            float* first = moments_.data() + tensor.offset;
            k_.adam(values_.data() + tensor.offset, first, first + parameter_count(shape_),
                    gradient(reducer, i), static_cast<long>(tensor.count),
                    adam_step(options, tensor));
        }
        return checked();
    }

    Result<std::vector<float>> next(std::span<const int> tokens) override {
        auto done = run(tokens, 1, static_cast<int>(tokens.size()));
        if (!done) return done.error();
        auto logits = m_.logits.on_host((positions_ - 1) * logits_row(), shape_.vocabulary);
        if (!logits) return logits.error();
        return widened(std::move(*logits));
    }

  private:
    // Whether products have rounded factors.
    static constexpr bool kRounds = !std::is_same_v<T, float>;

    long width() const { return shape_.width; }
    const float* value(std::size_t tensor) const {
        return values_.data() + tensors_[tensor].offset;
    }
    static float* gradient(const GradientReducer& reducer, std::size_t tensor) {
        return static_cast<float*>(reducer.gradient(tensor).data);
    }

    // Tensor cores want rows of logits that begin at even places. The words behind the vocabulary
    // have weights of 0.
    long logits_row() const {
        return kRounds ? (shape_.vocabulary + 63) / 64 * 64 : shape_.vocabulary;
    }
    long padding() const { return (logits_row() - shape_.vocabulary) * width(); }

    // A parameter as products take it.
    const T* factor(std::size_t tensor) const {
        if constexpr (kRounds)
            return factors_.data() + tensors_[tensor].offset + (tensor == kTokens ? 0 : padding());
        else
            return value(tensor);
    }
    void round_parameters() {
        if constexpr (kRounds) {
            if (rounded_) return;
            const long tokens = static_cast<long>(tensors_[kTokens].count);
            k_.narrow(factors_.data(), values_.data(), tokens);
            k_.narrow(factors_.data() + tokens + padding(), values_.data() + tokens,
                      static_cast<long>(parameter_count(shape_)) - tokens);
            rounded_ = true;
        }
    }

    // The derivatives of the residual stream as products take them.
    const T* rounded_d() const {
        if constexpr (kRounds) {
            k_.narrow(m_.d_rounded.data(), m_.d.data(), positions_ * width());
            return m_.d_rounded.data();
        } else {
            return m_.d.data();
        }
    }

    // The last parameter first, as the buckets expect it.
    Result<void> ready(GradientReducer& reducer, std::size_t first, std::size_t last) const {
        if (auto done = checked(); !done) return done;
        for (std::size_t i = last + 1; i-- > first;)
            if (auto done = reducer.ready(i); !done) return done;
        return {};
    }

    Result<void> checked() const {
        const char* problem = k_.problem();
        if (!problem) return {};
        return ddprun::Error(ddprun::ErrorCode::unavailable,
                             std::string("the network on ") + k_.name + ": " + problem);
    }

    // out = in × weight + bias, for a layer of the network. A float result is added to what is
    // there: the residual stream.
    template <class Out>
    BasicProduct<T, Out> linear(const T* in, long inputs, std::size_t weight, long outputs,
                                Out* out, bool add) const {
        return {.left = {in, inputs},
                .right = {factor(weight), outputs},
                .rows = positions_,
                .columns = outputs,
                .depth = inputs,
                .out = out,
                .out_row = outputs,
                .bias = value(weight + 1),
                .add = add};
    }

    // The gradients of weight and bias, and d_in (set, not added).
    void linear_backward(GradientReducer& reducer, const T* in, long inputs, std::size_t weight,
                         long outputs, const T* d_out, T* d_in) const {
        k_.multiply({.left = {d_out, outputs},
                     .right = BasicMatrix<T>{factor(weight), outputs}.transposed(),
                     .rows = positions_,
                     .columns = inputs,
                     .depth = outputs,
                     .out = d_in,
                     .out_row = inputs});
        k_.multiply_wide({.left = BasicMatrix<T>{in, inputs}.transposed(),
                          .right = {d_out, outputs},
                          .rows = inputs,
                          .columns = outputs,
                          .depth = positions_,
                          .out = gradient(reducer, weight),
                          .out_row = outputs,
                          .add = true});
        k_.add_rows(gradient(reducer, weight + 1), d_out, positions_, outputs);
    }

    LayerNorm norm(const Floats& in, std::size_t weight, const Floats& mean,
                   const Floats& rstd) const {
        return {positions_,        width(),     in.data(),  value(weight),
                value(weight + 1), mean.data(), rstd.data()};
    }

    BasicAttention<T> attention_of(const LayerMemory<T>& m) const {
        return {rows_,        length_,        shape_.heads, width() / shape_.heads,
                m.qkv.data(), m.shares.data()};
    }

    // All layers, up to the logits.
    Result<void> run(std::span<const int> tokens, int rows, int length) {
        rows_ = rows;
        length_ = length;
        positions_ = static_cast<long>(tokens.size());
        if (auto done = tokens_.fill(memory_, tokens); !done) return done;
        if (auto done = m_.make_room(memory_, shape_, rows, length, logits_row()); !done)
            return done;
        round_parameters();
        k_.embed(m_.layers[0].in.data(), tokens_.data(), value(kTokens), value(kPositions),
                 positions_, length_, width());
        for (int layer = 0; layer < shape_.layers; ++layer) {
            const bool last = layer + 1 == shape_.layers;
            const Floats& next = last ? m_.out : m_.layers[static_cast<std::size_t>(layer) + 1].in;
            forward_layer(layer, next.data());
        }
        k_.layer_norm(norm(m_.out, last_norm(shape_), m_.mean, m_.rstd), m_.norm.data());
        k_.multiply({.left = {m_.norm.data(), width()},
                     .right = BasicMatrix<T>{factor(kTokens), width()}.transposed(),
                     .rows = positions_,
                     .columns = logits_row(),
                     .depth = width(),
                     .out = m_.logits.data(),
                     .out_row = logits_row()});
        return checked();
    }

    void forward_layer(int layer, float* out) const {
        const auto& m = m_.layers[static_cast<std::size_t>(layer)];
        const long stream = positions_ * width();
        k_.layer_norm(norm(m.in, part_at(layer, norm1_weight), m.mean1, m.rstd1), m.norm1.data());
        k_.multiply(linear(m.norm1.data(), width(), part_at(layer, qkv_weight), 3 * width(),
                           m.qkv.data(), false));
        k_.attention(attention_of(m), m.attention.data());
        k_.copy(m.middle.data(), m.in.data(), stream);
        k_.multiply_wide(linear(m.attention.data(), width(), part_at(layer, attention_weight),
                                width(), m.middle.data(), true));
        k_.layer_norm(norm(m.middle, part_at(layer, norm2_weight), m.mean2, m.rstd2),
                      m.norm2.data());
        k_.multiply(linear(m.norm2.data(), width(), part_at(layer, up_weight), 4 * width(),
                           m.up.data(), false));
        k_.gelu(m.gelu.data(), m.up.data(), 4 * stream);
        k_.copy(out, m.middle.data(), stream);
        k_.multiply_wide(
            linear(m.gelu.data(), 4 * width(), part_at(layer, down_weight), width(), out, true));
    }

    // Logits and last norm. Leaves the derivatives of the residual stream in m_.d.
    void output_backward(GradientReducer& reducer) {
        const BasicMatrix<T> logits{m_.logits.data(), logits_row()};
        k_.multiply({.left = logits,
                     .right = {factor(kTokens), width()},
                     .rows = positions_,
                     .columns = width(),
                     .depth = logits_row(),
                     .out = m_.d_narrow.data(),
                     .out_row = width()});
        k_.multiply_wide({.left = logits.transposed(),
                          .right = {m_.norm.data(), width()},
                          .rows = shape_.vocabulary,
                          .columns = width(),
                          .depth = positions_,
                          .out = gradient(reducer, kTokens),
                          .out_row = width(),
                          .add = true});
        // The norm's backward pass adds to it: the last layer's derivatives begin at 0.
        k_.zero(m_.d.data(), positions_ * width());
        const auto at = last_norm(shape_);
        k_.layer_norm_backward(norm(m_.out, at, m_.mean, m_.rstd), m_.d_narrow.data(), m_.d.data(),
                               gradient(reducer, at), gradient(reducer, at + 1));
    }

    // The residual stream passes its derivatives on unchanged; each half of a layer adds its own.
    Result<void> mlp_backward(GradientReducer& reducer, int layer) {
        const auto& m = m_.layers[static_cast<std::size_t>(layer)];
        const auto up = part_at(layer, up_weight), norm2 = part_at(layer, norm2_weight);
        T* d_wide = m_.d_wide.data();
        linear_backward(reducer, m.gelu.data(), 4 * width(), part_at(layer, down_weight), width(),
                        rounded_d(), d_wide);
        k_.gelu_backward(d_wide, m.up.data(), d_wide, 4 * positions_ * width());
        linear_backward(reducer, m.norm2.data(), width(), up, 4 * width(), d_wide,
                        m_.d_narrow.data());
        k_.layer_norm_backward(norm(m.middle, norm2, m.mean2, m.rstd2), m_.d_narrow.data(),
                               m_.d.data(), gradient(reducer, norm2), gradient(reducer, norm2 + 1));
        return ready(reducer, norm2, part_at(layer, down_bias));
    }

    Result<void> attention_backward(GradientReducer& reducer, int layer) {
        const auto& m = m_.layers[static_cast<std::size_t>(layer)];
        const auto norm1 = part_at(layer, norm1_weight);
        T *d_narrow = m_.d_narrow.data(), *d_wide = m_.d_wide.data();
        linear_backward(reducer, m.attention.data(), width(), part_at(layer, attention_weight),
                        width(), rounded_d(), d_narrow);
        k_.attention_backward(attention_of(m), d_narrow, d_wide, m_.scores.data());
        linear_backward(reducer, m.norm1.data(), width(), part_at(layer, qkv_weight), 3 * width(),
                        d_wide, d_narrow);
        k_.layer_norm_backward(norm(m.in, norm1, m.mean1, m.rstd1), d_narrow, m_.d.data(),
                               gradient(reducer, norm1), gradient(reducer, norm1 + 1));
        return ready(reducer, norm1, part_at(layer, attention_bias));
    }

    const BasicKernels<T>& k_;
    const Memory memory_;
    const GptShape shape_;
    const std::vector<Tensor> tensors_;
    Floats values_, moments_;
    MemoryBlock<T> factors_;  // the parameters in bfloat16; empty in float32
    bool rounded_ = false;    // factors_ are the parameters of now
    // Of the last forward().
    Ints tokens_, targets_;
    WordRowsMemory words_;
    long rows_ = 0, length_ = 0, positions_ = 0;
    NetworkMemory<T> m_;
};

}  // namespace

template <class T>
Result<std::unique_ptr<Gpt>> make_gpt(const GptShape& shape, std::span<const float> parameters,
                                      const BasicKernels<T>& kernels, Memory memory) {
    auto made = std::make_unique<Network<T>>(shape, kernels, memory);
    if (auto done = made->begin(parameters); !done) return done.error();
    return std::unique_ptr<Gpt>(std::move(made));
}

template Result<std::unique_ptr<Gpt>> make_gpt(const GptShape&, std::span<const float>,
                                               const BasicKernels<float>&, Memory);
template Result<std::unique_ptr<Gpt>> make_gpt(const GptShape&, std::span<const float>,
                                               const BasicKernels<Bfloat16>&, Memory);

}  // namespace example::gpt
