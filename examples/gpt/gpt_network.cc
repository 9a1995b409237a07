// The GPT: which kernel runs on which memory, forward and backward. The same for CPUs and GPUs.
#include "examples/gpt/gpt_model.h"
#include "examples/gpt/kernels.h"
#include "examples/gpt/memory_block.h"
#include "examples/gpt/word_rows.h"

namespace example::gpt {
namespace {

using ddprun::Result;
using ddprun::trainer::GradientReducer;
using ddprun::trainer::Memory;
using ddprun::trainer::NamedBuffer;

// What forward() of a layer keeps for backward(). M: positions of the batch, C: width.
struct LayerMemory {
    Floats in;                      // M × C; the residual stream before the layer
    Floats norm1, mean1, rstd1;     // M × C, M, M
    Floats qkv, shares, attention;  // M × 3C; rows × heads × length²; M × C
    Floats middle;                  // M × C; the residual stream after attention
    Floats norm2, mean2, rstd2;     // M × C, M, M
    Floats up, gelu;                // M × 4C
};

// The rows of a batch by their words, in the kernels' memory.
class WordRowsMemory {
  public:
    Result<void> fill(Memory kind, std::span<const int> tokens, int vocabulary) {
        const RowsByWord rows = rows_by_word(tokens, vocabulary);
        count_ = static_cast<long>(rows.words.size());
        for (auto [to, from] : {std::pair(&words_, &rows.words), std::pair(&begins_, &rows.begins),
                                std::pair(&rows_, &rows.rows)})
            if (auto done = to->fill(kind, *from); !done) return done;
        return {};
    }
    WordRows view() const { return {count_, words_.data(), begins_.data(), rows_.data()}; }

  private:
    long count_ = 0;
    Ints words_, begins_, rows_;
};

class Network final : public Gpt {
  public:
    Network(const GptShape& shape, const Kernels& kernels, Memory memory)
        : k_(kernels),
          memory_(memory),
          shape_(shape),
          tensors_(tensors(shape)),
          layers_(static_cast<std::size_t>(shape.layers)) {}

    // What can fail, and so is not in the constructor.
    Result<void> begin(std::span<const float> parameters) {
        if (auto done = values_.fill(memory_, parameters); !done) return done;
        return moments_.resize(memory_, static_cast<long>(2 * parameters.size()));
    }

    const GptShape& shape() const override { return shape_; }
    std::vector<NamedBuffer> parameters() override {
        return named_tensors(shape_, values_.data(), "");
    }
    std::vector<NamedBuffer> moments() override { return named_moments(shape_, moments_.data()); }

    Result<double> forward(const Batch& batch, float share) override {
        // Copies to a GPU wait for its kernels, so they come before these.
        if (auto done = targets_.fill(memory_, batch.targets); !done) return done.error();
        if (auto done = words_.fill(memory_, batch.tokens, shape_.vocabulary); !done)
            return done.error();
        if (auto done = run(batch.tokens, batch.rows, batch.length); !done) return done.error();
        k_.cross_entropy(logits_.data(), losses_.data(), targets_.data(), positions_,
                         shape_.vocabulary, share / static_cast<float>(positions_));
        auto losses = losses_.on_host(0, positions_);
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
                          d_.data(), positions_, length_, width());
        return ready(reducer, kTokens, kPositions);
    }

    Result<void> update(const GradientReducer& reducer, const AdamOptions& options) override {
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
        return logits_.on_host((positions_ - 1) * shape_.vocabulary, shape_.vocabulary);
    }

  private:
    long width() const { return shape_.width; }
    const float* value(std::size_t tensor) const {
        return values_.data() + tensors_[tensor].offset;
    }
    static float* gradient(const GradientReducer& reducer, std::size_t tensor) {
        return static_cast<float*>(reducer.gradient(tensor).data);
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

    // Memory for a batch. It grows with the largest one and stays.
    Result<void> make_room() {
        const long stream = positions_ * width();
        const long scores = rows_ * shape_.heads * length_ * length_;
        std::vector<std::pair<Floats*, long>> all{
            {&out_, stream},        {&norm_, stream},
            {&mean_, positions_},   {&rstd_, positions_},
            {&d_, stream},          {&d_narrow_, stream},
            {&d_wide_, 4 * stream}, {&scores_, scores},
            {&losses_, positions_}, {&logits_, positions_ * shape_.vocabulary}};
        for (auto& m : layers_) {
            for (Floats* one : {&m.mean1, &m.rstd1, &m.mean2, &m.rstd2})
                all.emplace_back(one, positions_);
            for (Floats* one : {&m.in, &m.norm1, &m.attention, &m.middle, &m.norm2})
                all.emplace_back(one, stream);
            all.emplace_back(&m.qkv, 3 * stream);
            all.emplace_back(&m.shares, scores);
            all.emplace_back(&m.up, 4 * stream);
            all.emplace_back(&m.gelu, 4 * stream);
        }
        for (auto& [memory, count] : all)
            if (auto done = memory->resize(memory_, count); !done) return done;
        return {};
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

    LayerNorm norm(const Floats& in, std::size_t weight, const Floats& mean,
                   const Floats& rstd) const {
        return {positions_,        width(),     in.data(),  value(weight),
                value(weight + 1), mean.data(), rstd.data()};
    }

    Attention attention_of(const LayerMemory& m) const {
        return {rows_,        length_,        shape_.heads, width() / shape_.heads,
                m.qkv.data(), m.shares.data()};
    }

    // All layers, up to the logits.
    Result<void> run(std::span<const int> tokens, int rows, int length) {
        rows_ = rows;
        length_ = length;
        positions_ = static_cast<long>(tokens.size());
        if (auto done = tokens_.fill(memory_, tokens); !done) return done;
        if (auto done = make_room(); !done) return done;
        k_.embed(layers_[0].in.data(), tokens_.data(), value(kTokens), value(kPositions),
                 positions_, length_, width());
        for (int layer = 0; layer < shape_.layers; ++layer) {
            const bool last = layer + 1 == shape_.layers;
            const Floats& next = last ? out_ : layers_[static_cast<std::size_t>(layer) + 1].in;
            forward_layer(layer, next.data());
        }
        k_.layer_norm(norm(out_, last_norm(shape_), mean_, rstd_), norm_.data());
        k_.multiply({.left = {norm_.data(), width()},
                     .right = Matrix{value(kTokens), width()}.transposed(),
                     .rows = positions_,
                     .columns = shape_.vocabulary,
                     .depth = width(),
                     .out = logits_.data(),
                     .out_row = shape_.vocabulary});
        return checked();
    }

    void forward_layer(int layer, float* out) const {
        const auto& m = layers_[static_cast<std::size_t>(layer)];
        const long stream = positions_ * width();
        k_.layer_norm(norm(m.in, part_at(layer, norm1_weight), m.mean1, m.rstd1), m.norm1.data());
        linear(m.norm1.data(), width(), part_at(layer, qkv_weight), 3 * width(), m.qkv.data());
        k_.attention(attention_of(m), m.attention.data());
        k_.copy(m.middle.data(), m.in.data(), stream);
        linear(m.attention.data(), width(), part_at(layer, attention_weight), width(),
               m.middle.data(), true);
        k_.layer_norm(norm(m.middle, part_at(layer, norm2_weight), m.mean2, m.rstd2),
                      m.norm2.data());
        linear(m.norm2.data(), width(), part_at(layer, up_weight), 4 * width(), m.up.data());
        k_.gelu(m.gelu.data(), m.up.data(), 4 * stream);
        k_.copy(out, m.middle.data(), stream);
        linear(m.gelu.data(), 4 * width(), part_at(layer, down_weight), width(), out, true);
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
        // The norm's backward pass adds to it: the last layer's derivatives begin at 0.
        k_.zero(d_.data(), positions_ * width());
        const auto at = last_norm(shape_);
        k_.layer_norm_backward(norm(out_, at, mean_, rstd_), d_narrow_.data(), d_.data(),
                               gradient(reducer, at), gradient(reducer, at + 1));
    }

    // The residual stream passes its derivatives on unchanged; each half of a layer adds its own.
    Result<void> mlp_backward(GradientReducer& reducer, int layer) {
        const auto& m = layers_[static_cast<std::size_t>(layer)];
        const auto up = part_at(layer, up_weight), norm2 = part_at(layer, norm2_weight);
        linear_backward(reducer, m.gelu.data(), 4 * width(), part_at(layer, down_weight), width(),
                        d_.data(), d_wide_.data());
        k_.gelu_backward(d_wide_.data(), m.up.data(), d_wide_.data(), 4 * positions_ * width());
        linear_backward(reducer, m.norm2.data(), width(), up, 4 * width(), d_wide_.data(),
                        d_narrow_.data());
        k_.layer_norm_backward(norm(m.middle, norm2, m.mean2, m.rstd2), d_narrow_.data(), d_.data(),
                               gradient(reducer, norm2), gradient(reducer, norm2 + 1));
        return ready(reducer, norm2, part_at(layer, down_bias));
    }

    Result<void> attention_backward(GradientReducer& reducer, int layer) {
        const auto& m = layers_[static_cast<std::size_t>(layer)];
        const auto norm1 = part_at(layer, norm1_weight);
        linear_backward(reducer, m.attention.data(), width(), part_at(layer, attention_weight),
                        width(), d_.data(), d_narrow_.data());
        k_.attention_backward(attention_of(m), d_narrow_.data(), d_wide_.data(), scores_.data());
        linear_backward(reducer, m.norm1.data(), width(), part_at(layer, qkv_weight), 3 * width(),
                        d_wide_.data(), d_narrow_.data());
        k_.layer_norm_backward(norm(m.in, norm1, m.mean1, m.rstd1), d_narrow_.data(), d_.data(),
                               gradient(reducer, norm1), gradient(reducer, norm1 + 1));
        return ready(reducer, norm1, part_at(layer, attention_bias));
    }

    const Kernels& k_;
    const Memory memory_;
    const GptShape shape_;
    const std::vector<Tensor> tensors_;
    Floats values_, moments_;
    // Of the last forward().
    Ints tokens_, targets_;
    WordRowsMemory words_;
    long rows_ = 0, length_ = 0, positions_ = 0;
    std::vector<LayerMemory> layers_;
    Floats out_, norm_, mean_, rstd_;  // residual stream at the end, and its norm
    Floats logits_;                    // after forward(): their derivatives
    Floats losses_;
    // Derivatives of the residual stream, of something M × C, of something M × 4C, of the scores.
    Floats d_, d_narrow_, d_wide_, scores_;
};

}  // namespace

Result<std::unique_ptr<Gpt>> make_gpt(const GptShape& shape, std::span<const float> parameters,
                                      const Kernels& kernels, Memory memory) {
    auto made = std::make_unique<Network>(shape, kernels, memory);
    if (auto done = made->begin(parameters); !done) return done.error();
    return std::unique_ptr<Gpt>(std::move(made));
}

}  // namespace example::gpt
