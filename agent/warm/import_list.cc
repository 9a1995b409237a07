// Reads records of imports.
#include "agent/warm/import_list.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace ddprun::agent::warm {
namespace {

// A program has a few thousand modules. Beyond this, somebody plays.
constexpr std::size_t kMost = 100'000;

using Numbered = std::pair<std::size_t, Import>;

std::optional<Numbered> read_line(std::string_view line) {
    const std::size_t first = line.find('\t');
    const std::size_t second = first == line.npos ? first : line.find('\t', first + 1);
    if (second == line.npos || line.find('\0') != line.npos) return std::nullopt;
    std::size_t number = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + first, number);
    if (error != std::errc{} || end != line.data() + first || second == first + 1)
        return std::nullopt;
    return Numbered{number,
                    {std::string(line.substr(first + 1, second - first - 1)),
                     std::string(line.substr(second + 1))}};
}

}  // namespace

bool ImportList::add(std::string_view record) {
    std::vector<Numbered> found;
    while (true) {
        const std::size_t end = record.find('\n');
        if (end == record.npos) break;  // the line is not complete
        if (auto line = read_line(record.substr(0, end));
            line && !names_.contains(line->second.name))
            found.push_back(std::move(*line));
        record.remove_prefix(end + 1);
    }
    std::ranges::stable_sort(found, {}, &Numbered::first);
    std::vector<Import> sorted;
    for (auto& [number, import] : found) sorted.push_back(std::move(import));
    const std::size_t before = imports_.size();
    add(sorted);
    return imports_.size() > before;
}

void ImportList::add(const std::vector<Import>& known) {
    for (const Import& import : known)
        if (imports_.size() < kMost && names_.insert(import.name).second)
            imports_.push_back(import);
}

}  // namespace ddprun::agent::warm
