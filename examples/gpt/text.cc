// Reads a text and cuts it into windows.
#include "examples/gpt/text.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace example::gpt {

using ddprun::Error;
using ddprun::ErrorCode;
using ddprun::Result;
using ddprun::usage_error;

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kEach = 10;  // one window in so many is for validation
const char kLicenses[] = "/usr/share/common-licenses";

Result<std::string> read_file(const fs::path& path) {
    // Reading a folder would throw.
    if (std::ifstream in(path, std::ios::binary); in && !fs::is_directory(path))
        return std::string{std::istreambuf_iterator<char>(in), {}};
    return Error(ErrorCode::usage,
                 "cannot read the text " + path.string() + "; --text FILE names another one");
}

// In the order of their names, and without the links, which would repeat some.
Result<std::string> read_licenses() {
    std::vector<fs::path> files;
    std::error_code problem;
    for (const auto& entry : fs::directory_iterator(kLicenses, problem))
        if (entry.is_regular_file() && !entry.is_symlink()) files.push_back(entry.path());
    if (files.empty())
        return usage_error("there is no text in " + std::string(kLicenses) +
                           "; --text FILE names one");
    std::sort(files.begin(), files.end());
    std::string all;
    for (const auto& file : files) {
        auto text = read_file(file);
        if (!text) return text.error();
        all += *text;
    }
    return all;
}

}  // namespace

Result<std::string> load_text(const std::string& path) {
    if (path.empty()) return read_licenses();
    auto text = read_file(path);
    if (text && text->empty())
        return usage_error("the text " + path +
                           " is empty; --text FILE names another one (a worker's standard input is "
                           "empty, too)");
    return text;
}

std::string vocabulary_of(const std::string& text) {
    std::array<bool, 256> seen{};
    for (char c : text) seen[static_cast<unsigned char>(c)] = true;
    std::string all;
    for (std::size_t c = 0; c < seen.size(); ++c)
        if (seen[c]) all += static_cast<char>(c);
    return all;
}

Result<Text> Text::make(const std::string& text, const std::string& vocabulary, int context) {
    Text made;
    made.vocabulary_ = vocabulary;
    made.context_ = context;
    made.windows_ = (static_cast<std::int64_t>(text.size()) - 1) / context;
    if (text.empty() || made.windows_ < kEach)
        return usage_error("the text has " + std::to_string(text.size()) +
                           " characters, but --context " + std::to_string(context) +
                           " needs at least " + std::to_string(kEach * context + 1));
    std::array<int, 256> token;
    token.fill(-1);
    for (std::size_t i = 0; i < vocabulary.size(); ++i)
        token[static_cast<unsigned char>(vocabulary[i])] = static_cast<int>(i);
    made.tokens_.reserve(text.size());
    for (char c : text) {
        const int found = token[static_cast<unsigned char>(c)];
        if (found < 0)
            return usage_error("the text has the character " +
                               std::to_string(static_cast<unsigned char>(c)) + " at byte " +
                               std::to_string(made.tokens_.size()) + ", which is not among the " +
                               std::to_string(vocabulary.size()) +
                               " characters that the model knows; was it trained on another text?");
        made.tokens_.push_back(static_cast<std::uint8_t>(found));
    }
    return made;
}

Batch Text::training(std::span<const std::int64_t> windows) const {
    std::vector<std::int64_t> all(windows.begin(), windows.end());
    for (auto& window : all) window += window / (kEach - 1);
    return batch(all);
}

Batch Text::validation(std::span<const std::int64_t> windows) const {
    std::vector<std::int64_t> all(windows.begin(), windows.end());
    for (auto& window : all) window = kEach * window + kEach - 1;
    return batch(all);
}

Batch Text::batch(std::span<const std::int64_t> windows) const {
    Batch made;
    made.rows = static_cast<int>(windows.size());
    made.length = context_;
    for (const auto window : windows) {
        const auto first = tokens_.begin() + window * context_;
        made.tokens.insert(made.tokens.end(), first, first + context_);
        made.targets.insert(made.targets.end(), first + 1, first + context_ + 1);
    }
    return made;
}

}  // namespace example::gpt
