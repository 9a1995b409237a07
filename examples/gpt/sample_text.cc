// Draws characters from the model's distribution.
#include "examples/gpt/sample_text.h"

#include <algorithm>
#include <cmath>

#include "base/printable.h"
#include "examples/random.h"

namespace example::gpt {

using ddprun::Result;

namespace {

constexpr float kTemperature = 0.8f;

// How many bytes a character has in UTF-8, by its first one.
std::size_t length_of(char first) {
    const auto byte = static_cast<unsigned char>(first);
    return byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
}

}  // namespace

std::string printable_text(const std::string& bytes) {
    std::string out;
    for (std::size_t at = 0; at < bytes.size();) {
        const std::string character = bytes.substr(at, length_of(bytes[at]));
        const bool shown = character == "\n" || ddprun::printable(character) == character;
        out += shown ? character : "?";
        at += shown ? character.size() : 1;
    }
    return out;
}

int token_at(std::span<const float> logits, int count, float temperature, double random) {
    const float most = *std::max_element(logits.begin(), logits.begin() + count);
    std::vector<double> shares;
    double sum = 0;
    for (int i = 0; i < count; ++i) {
        shares.push_back(std::exp(
            static_cast<double>((logits[static_cast<std::size_t>(i)] - most) / temperature)));
        sum += shares.back();
    }
    double left = random * sum;
    for (int i = 0; i < count; ++i) {
        left -= shares[static_cast<std::size_t>(i)];
        if (left < 0) return i;
    }
    return count - 1;  // only by rounding
}

Result<std::string> sample_text(Gpt& gpt, const std::string& vocabulary, int characters,
                                std::uint64_t seed) {
    const auto line_end = vocabulary.find('\n');
    std::vector<int> tokens{static_cast<int>(line_end == std::string::npos ? 0 : line_end)};
    const auto count = static_cast<int>(vocabulary.size());
    const auto context = static_cast<std::size_t>(gpt.shape().context);
    std::string out;
    for (int i = 0; i < characters; ++i) {
        auto logits = gpt.next(std::span(tokens).last(std::min(context, tokens.size())));
        if (!logits) return logits.error();
        const double random =
            (1 + static_cast<double>(uniform(seed, static_cast<std::uint64_t>(i)))) / 2;
        tokens.push_back(token_at(*logits, count, kTemperature, random));
        out += vocabulary[static_cast<std::size_t>(tokens.back())];
    }
    return printable_text(out);
}

}  // namespace example::gpt
