// The CPU kernels of the GPT: products against plain sums, each layer's backward pass against
// differences, for each kind of CPU that this machine has.
#include "examples/gpt/cpu_kernels.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "examples/random.h"

namespace example::gpt {
namespace {

using Values = std::vector<float>;

// Numbers between -1 and 1.
Values values(long count, std::uint64_t seed) {
    Values all;
    for (long i = 0; i < count; ++i) all.push_back(uniform(seed, static_cast<std::uint64_t>(i)));
    return all;
}

class CpuKernelsTest : public testing::TestWithParam<CpuKind> {
  protected:
    void SetUp() override {
        kernels_ = cpu_kernels_of(GetParam());
        if (!kernels_) GTEST_SKIP() << "this CPU or build has no such kernels";
    }
    const Kernels& k() const { return *kernels_; }

  private:
    const Kernels* kernels_ = nullptr;
};

std::string name_of(const testing::TestParamInfo<CpuKind>& info) {
    const char* names[] = {"Any", "Avx2", "Avx512"};
    return names[static_cast<int>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(Each, CpuKernelsTest,
                         testing::Values(CpuKind::any, CpuKind::avx2, CpuKind::avx512), name_of);

// The sizes are no multiples of a tile, and one is deeper than what is summed at a time (256). The
// left matrix, the right one, or both are transposed.
TEST_P(CpuKernelsTest, MultipliesAsPlainSumsDo) {
    for (auto [rows, columns, depth] : {std::tuple(1L, 1L, 1L), {13, 33, 300}, {40, 70, 5}}) {
        const Values left = values(rows * depth, 1), right = values(depth * columns, 2),
                     bias = values(columns, 3), before = values(rows * columns, 4);
        for (int kind = 0; kind < 8; ++kind) {
            const bool left_turned = kind & 1, right_turned = kind & 2, add = kind & 4;
            const Matrix a =
                left_turned ? Matrix{left.data(), 1, rows} : Matrix{left.data(), depth};
            const Matrix b =
                right_turned ? Matrix{right.data(), 1, depth} : Matrix{right.data(), columns};
            Values out = before;
            k().multiply({a, b, rows, columns, depth, out.data(), columns, bias.data(), 0.5f, add});
            for (long i = 0; i < rows; ++i) {
                for (long j = 0; j < columns; ++j) {
                    double sum = 0;
                    for (long d = 0; d < depth; ++d)
                        sum += static_cast<double>(a.data[i * a.row + d * a.column]) *
                               static_cast<double>(b.data[d * b.row + j * b.column]);
                    const auto at = static_cast<std::size_t>(i * columns + j);
                    sum = 0.5 * sum + static_cast<double>(bias[static_cast<std::size_t>(j)]) +
                          (add ? static_cast<double>(before[at]) : 0);
                    ASSERT_NEAR(static_cast<double>(out[at]), sum, 2e-5)
                        << rows << "x" << columns << "x" << depth << " kind " << kind;
                }
            }
        }
    }
}

// What is outside of the result stays: the product may be a part of a larger matrix.
TEST_P(CpuKernelsTest, WritesNothingBesideTheProduct) {
    const Values left = values(5 * 3, 1), right = values(3 * 7, 2);
    Values out(5 * 9, 99.0f);
    k().multiply({{left.data(), 3}, {right.data(), 7}, 5, 7, 3, out.data() + 1, 9});
    for (std::size_t i = 0; i < out.size(); ++i)
        EXPECT_EQ(out[i] == 99.0f, i % 9 == 0 || i % 9 == 8) << i;
}

// The derivative of `weights` · f(x) by each number of x, from two values of f.
template <class F>
void expect_slopes(Values& x, const Values& weights, const Values& slopes, F f) {
    constexpr float kStep = 1e-2f;
    auto total = [&] {
        const Values out = f();
        double sum = 0;
        for (std::size_t i = 0; i < out.size(); ++i)
            sum += static_cast<double>(out[i]) * static_cast<double>(weights[i]);
        return sum;
    };
    // Of a long x only some numbers.
    for (std::size_t i = 0; i < x.size(); i += 1 + x.size() / 90) {
        const float old = x[i];
        x[i] = old + kStep;
        const double up = total();
        x[i] = old - kStep;
        const double down = total();
        x[i] = old;
        const double slope = (up - down) / (2 * static_cast<double>(kStep));
        EXPECT_NEAR(static_cast<double>(slopes[i]), slope, 2e-3 + 0.01 * std::abs(slope)) << i;
    }
}

TEST_P(CpuKernelsTest, GeluBackwardIsTheSlope) {
    Values x = values(37, 1), d = values(37, 2), d_in(37);
    for (auto& value : x) value *= 4;
    k().gelu_backward(d_in.data(), x.data(), d.data(), 37);
    expect_slopes(x, d, d_in, [&] {
        Values out(37);
        k().gelu(out.data(), x.data(), 37);
        return out;
    });
}

// d_in is added to, because the residual stream has the same input.
TEST_P(CpuKernelsTest, LayerNormBackwardIsTheSlope) {
    constexpr long kRows = 3, kWidth = 21;
    Values x = values(kRows * kWidth, 1), weight = values(kWidth, 2), bias = values(kWidth, 3),
           mean(kRows), rstd(kRows);
    const Values d = values(kRows * kWidth, 4);
    const LayerNorm norm{kRows,       kWidth,      x.data(),   weight.data(),
                         bias.data(), mean.data(), rstd.data()};
    auto forward = [&] {
        Values out(kRows * kWidth);
        k().layer_norm(norm, out.data());
        return out;
    };
    forward();
    Values d_in(kRows * kWidth, 1.0f), d_weight(kWidth), d_bias(kWidth);
    k().layer_norm_backward(norm, d.data(), d_in.data(), d_weight.data(), d_bias.data());
    for (auto& value : d_in) value -= 1;
    expect_slopes(x, d, d_in, forward);
    expect_slopes(weight, d, d_weight, forward);
    expect_slopes(bias, d, d_bias, forward);
}

// Two sequences, two heads, and more positions than a block has (36).
TEST_P(CpuKernelsTest, AttentionBackwardIsTheSlope) {
    Attention a{2, 40, 2, 3, nullptr, nullptr};
    const long scores = a.batch * a.heads * a.length * a.length;
    const long positions = a.batch * a.length;
    Values qkv = values(positions * 3 * a.width(), 1), shares(static_cast<std::size_t>(scores)),
           scratch(static_cast<std::size_t>(scores));
    const Values d = values(positions * a.width(), 2);
    a.qkv = qkv.data();
    a.shares = shares.data();
    auto forward = [&] {
        Values out(static_cast<std::size_t>(positions * a.width()));
        k().attention(a, out.data());
        return out;
    };
    forward();
    Values d_qkv(qkv.size());
    k().attention_backward(a, d.data(), d_qkv.data(), scratch.data());
    expect_slopes(qkv, d, d_qkv, forward);
}

// A position sees only those before it: what comes later changes nothing.
TEST_P(CpuKernelsTest, AttentionDoesNotLookAhead) {
    Attention a{1, 50, 1, 4, nullptr, nullptr};
    Values qkv = values(50 * 12, 1), shares(50 * 50), before(200), after(200);
    a.qkv = qkv.data();
    a.shares = shares.data();
    k().attention(a, before.data());
    for (std::size_t i = 41 * 12; i < qkv.size(); ++i) qkv[i] += 1;
    k().attention(a, after.data());
    for (std::size_t i = 0; i < 200; ++i) EXPECT_EQ(before[i] == after[i], i < 41 * 4) << i;
}

TEST_P(CpuKernelsTest, CrossEntropyIsMinusTheLogarithmAndItsSlope) {
    constexpr long kRows = 4, kWords = 19;
    Values logits = values(kRows * kWords, 1);
    for (auto& value : logits) value *= 5;
    const int targets[kRows] = {0, 18, 7, 7};
    auto losses = [&] {
        Values copy = logits, out(kRows);
        k().cross_entropy({kRows, kWords, copy.data(), kWords, targets}, out.data(), 1);
        return out;
    };
    for (long r = 0; r < kRows; ++r) {
        double sum = 0;
        const auto row = static_cast<std::size_t>(r * kWords);
        for (std::size_t w = 0; w < kWords; ++w)
            sum += std::exp(static_cast<double>(logits[row + w]));
        const auto target = static_cast<double>(logits[row + static_cast<std::size_t>(targets[r])]);
        EXPECT_NEAR(static_cast<double>(losses()[static_cast<std::size_t>(r)]),
                    std::log(sum) - target, 1e-4);
    }
    Values slopes = logits, ignored(kRows);
    k().cross_entropy({kRows, kWords, slopes.data(), kWords, targets}, ignored.data(), 0.5f);
    expect_slopes(logits, Values(kRows, 0.5f), slopes, losses);
}

// Rows of logits may be longer than the vocabulary. What lies behind it does not count, and gets no
// derivative.
TEST_P(CpuKernelsTest, CrossEntropyLooksAtTheWordsOnly) {
    constexpr long kRows = 2, kWords = 5, kRow = 8;
    Values close = values(kRows * kWords, 1), apart(kRows * kRow, 99.0f);
    for (long r = 0; r < kRows; ++r)
        std::copy_n(close.begin() + r * kWords, kWords, apart.begin() + r * kRow);
    const int targets[kRows] = {4, 0};
    Values expected(kRows), losses(kRows);
    k().cross_entropy({kRows, kWords, close.data(), kWords, targets}, expected.data(), 1);
    k().cross_entropy({kRows, kWords, apart.data(), kRow, targets}, losses.data(), 1);
    EXPECT_EQ(losses, expected);
    for (std::size_t i = 0; i < apart.size(); ++i) {
        const std::size_t row = i / kRow, word = i % kRow;
        EXPECT_EQ(apart[i], word < kWords ? close[row * kWords + word] : 0) << i;
    }
}

// Two positions of one token add up, and so do two rows of one position.
TEST_P(CpuKernelsTest, EmbeddingsAndTheirGradients) {
    const int tokens[4] = {2, 0, 2, 2};
    const Values of_token = values(3 * 5, 1), of_position = values(2 * 5, 2), d = values(20, 3);
    Values out(20), d_token(15), d_position(10);
    k().embed(out.data(), tokens, of_token.data(), of_position.data(), 4, 2, 5);
    EXPECT_FLOAT_EQ(out[3 * 5 + 1], of_token[2 * 5 + 1] + of_position[1 * 5 + 1]);
    const int words[] = {0, 2}, begins[] = {0, 1, 4}, rows[] = {1, 0, 2, 3};
    k().embed_backward(d_token.data(), d_position.data(), {2, words, begins, rows}, d.data(), 4, 2,
                       5);
    EXPECT_FLOAT_EQ(d_token[2 * 5 + 4], d[4] + d[14] + d[19]);
    EXPECT_FLOAT_EQ(d_token[1 * 5 + 4], 0);
    EXPECT_FLOAT_EQ(d_position[4], d[4] + d[14]);
    EXPECT_FLOAT_EQ(d_position[9], d[9] + d[19]);
}

// Two steps by hand.
TEST_P(CpuKernelsTest, AdamTakesItsStep) {
    float value = 2, first = 0, second = 0;
    double v = 2, m = 0, s = 0;
    for (int step = 1; step <= 2; ++step) {
        const float gradient = step == 1 ? 0.5f : -0.25f;
        const double g = static_cast<double>(gradient);
        const AdamStep numbers{0.1f,
                               0.9f,
                               0.95f,
                               1e-8f,
                               0.3f,
                               static_cast<float>(1 - std::pow(0.9, step)),
                               static_cast<float>(1 - std::pow(0.95, step))};
        k().adam(&value, &first, &second, &gradient, 1, numbers);
        m = 0.9 * m + 0.1 * g;
        s = 0.95 * s + 0.05 * g * g;
        v = v * (1 - 0.1 * 0.3) - 0.1 * (m / (1 - std::pow(0.9, step))) /
                                      (std::sqrt(s / (1 - std::pow(0.95, step))) + 1e-8);
        EXPECT_NEAR(static_cast<double>(value), v, 1e-6);
    }
}

}  // namespace
}  // namespace example::gpt
