// Generates samples or reads them from a CSV file.
#include "examples/dataset.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "examples/random.h"

namespace example {

using ddprun::Result;
using ddprun::usage_error;

Dataset Dataset::made(std::size_t samples, int inputs, std::uint64_t seed) {
    Dataset data;
    data.inputs_ = inputs;
    for (std::size_t sample = 0; sample < samples; ++sample) {
        float target = 0;
        for (int i = 0; i < inputs; ++i) {
            const float x = uniform(
                seed + 1, sample * static_cast<std::size_t>(inputs) + static_cast<std::size_t>(i));
            data.x_.push_back(x);
            // Curved, and not a sum of functions of one input each. There are only additions and
            // multiplications, and no library function whose result could differ between machines.
            target += (i % 2 ? -x : x * x) *
                      (i % 3 ? 0.5f : data.x_[data.x_.size() - static_cast<std::size_t>(i) - 1]);
        }
        data.y_.push_back(target);
    }
    return data;
}

namespace {

// Appends the numbers of a line. False if the line holds anything else, or one that is not finite.
bool parse_line(const std::string& line, std::vector<float>& row) {
    const char* at = line.data();
    const char* end = at + line.size();
    while (true) {
        while (at != end && (*at == ' ' || *at == '\t')) ++at;
        float value = 0;
        auto [stop, problem] = std::from_chars(at, end, value);
        if (problem != std::errc{} || !std::isfinite(value)) return false;
        row.push_back(value);
        at = stop;
        // '\r': a file with Windows line ends is read too.
        while (at != end && (*at == ' ' || *at == '\t' || *at == '\r')) ++at;
        if (at == end) return true;
        if (*at++ != ',') return false;
    }
}

// The names of columns: no field begins with a number.
bool is_heading(const std::string& line) {
    for (std::size_t begin = 0; begin <= line.size();) {
        const std::size_t end = std::min(line.find(',', begin), line.size());
        std::vector<float> number;
        if (parse_line(line.substr(begin, end - begin), number) || !number.empty()) return false;
        begin = end + 1;
    }
    return true;
}

}  // namespace

Result<Dataset> Dataset::from_csv(const std::string& path) {
    std::ifstream file(path);
    if (!file) return usage_error("cannot open --data " + path + ": " + std::strerror(errno));
    if (std::filesystem::is_directory(path))
        return usage_error("--data " + path + " is a folder; name a CSV file in it");
    Dataset data;
    std::string line;
    for (int number = 1; std::getline(file, line); ++number) {
        // Windows programs begin a file with the mark of UTF-8.
        if (number == 1 && line.starts_with("\xef\xbb\xbf")) line.erase(0, 3);
        if (number == 1 && is_heading(line)) continue;
        if (line.empty() || line == "\r" || line[0] == '#') continue;
        std::vector<float> row;
        const bool good = parse_line(line, row) && row.size() >= 2;
        // The first row decides how many columns the file has.
        if (!good || (data.inputs_ && row.size() != static_cast<std::size_t>(data.inputs_) + 1)) {
            const std::string columns =
                data.inputs_ ? std::to_string(data.inputs_ + 1) : "2 or more";
            return usage_error(path + ":" + std::to_string(number) + ": not a row of " + columns +
                               " numbers with commas between them, the last one the target");
        }
        data.inputs_ = static_cast<int>(row.size()) - 1;
        data.x_.insert(data.x_.end(), row.begin(), row.end() - 1);
        data.y_.push_back(row.back());
    }
    if (data.y_.empty()) return usage_error("--data " + path + " holds no samples");
    return data;
}

void Dataset::copy(std::int64_t sample, std::span<float> x, float& y) const {
    std::copy_n(x_.begin() + static_cast<std::ptrdiff_t>(sample) * inputs_, inputs_, x.begin());
    y = y_[static_cast<std::size_t>(sample)];
}

Batch Dataset::batch(std::span<const std::int64_t> samples) const {
    const auto inputs = static_cast<std::size_t>(inputs_);
    Batch batch{std::vector<float>(samples.size() * inputs), std::vector<float>(samples.size())};
    for (std::size_t i = 0; i < samples.size(); ++i)
        copy(samples[i], std::span(batch.x).subspan(i * inputs, inputs), batch.y[i]);
    return batch;
}

Batch Dataset::head(std::size_t most, int rank, int world) const {
    std::vector<std::int64_t> samples;
    // Dealt out in turn, so that the parts of the ranks differ by one sample at most.
    for (auto i = static_cast<std::size_t>(rank); i < std::min(most, size());
         i += static_cast<std::size_t>(world))
        samples.push_back(static_cast<std::int64_t>(i));
    return batch(samples);
}

}  // namespace example
