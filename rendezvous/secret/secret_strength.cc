// The alphabets, and which bytes of a text count.
#include "rendezvous/secret/secret_strength.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace ddprun::rendezvous {
namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kLower = "abcdefghijklmnopqrstuvwxyz";
constexpr std::string_view kUpper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr double kBitsOfALetterInWords = 2;

bool is_in(char c, std::string_view alphabet) { return alphabet.find(c) != std::string_view::npos; }

template <typename Has>
bool all(std::string_view text, const Has& has) {
    return std::all_of(text.begin(), text.end(), has);
}

// Letters of one case, or of both with blanks between them; and what stands between words.
bool is_words(std::string_view text) {
    constexpr std::string_view kBlanks = " \n\r\t";
    const auto in_between = [&](char c) { return is_in(c, kBlanks) || is_in(c, "-_.,;:'!?"); };
    const auto of = [&](std::string_view letters, std::string_view others) {
        return all(text,
                   [&](char c) { return is_in(c, letters) || is_in(c, others) || in_between(c); });
    };
    if (of(kLower, "") || of(kUpper, "")) return true;
    return of(kLower, kUpper) && text.find_first_of(kBlanks) != std::string_view::npos;
}

// What one byte counts that nothing foretells.
double bits_a_byte(std::string_view text) {
    if (all(text, [](char c) { return is_in(c, kDigits) || is_in(c, " -_.,:/"); }))
        return std::log2(10);
    if (all(text, [](char c) { return is_in(c, "0123456789abcdef"); }) ||
        all(text, [](char c) { return is_in(c, "0123456789ABCDEF"); }))
        return 4;
    if (is_words(text)) return kBitsOfALetterInWords;
    if (all(text, [](char c) { return is_in(c, kLower) || is_in(c, kDigits); }) ||
        all(text, [](char c) { return is_in(c, kUpper) || is_in(c, kDigits); }))
        return std::log2(36);
    if (all(text, [](char c) {
            return is_in(c, kLower) || is_in(c, kUpper) || is_in(c, kDigits) || is_in(c, "+/=-_");
        }))
        return 6;
    return all(text, [](char c) { return c >= ' ' && c <= '~'; }) ? std::log2(95) : 8;
}

// Whether it goes on as the text has begun: a run, or three bytes for the second time.
bool is_foretold(std::string_view text, std::size_t at) {
    if (at < 2) return false;
    const int step = text[at] - text[at - 1];
    const bool runs_on = std::abs(step) <= 1 && step == text[at - 1] - text[at - 2];
    return runs_on || text.substr(0, at).find(text.substr(at - 2, 3)) != std::string_view::npos;
}

}  // namespace

double guess_bits(std::string_view secret) {
    double unforetold = 0;
    for (std::size_t i = 0; i < secret.size(); ++i) unforetold += is_foretold(secret, i) ? 0 : 1;
    return unforetold * bits_a_byte(secret);
}

}  // namespace ddprun::rendezvous
