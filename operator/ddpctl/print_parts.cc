// Tables and JSON (print_parts.h).
#include "operator/ddpctl/print_parts.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace ddprun::launcher {
namespace {

// Counts characters, not bytes: names may have letters of two bytes and more.
std::size_t width_of(const std::string& text) {
    return static_cast<std::size_t>(
        std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace

std::string table_text(const std::vector<std::vector<Cell>>& rows,
                       const std::set<std::size_t>& numbers) {
    std::vector<std::size_t> widths;
    for (const auto& row : rows) {
        widths.resize(std::max(widths.size(), row.size()));
        for (std::size_t i = 0; i < row.size(); ++i)
            widths[i] = std::max(widths[i], width_of(row[i].text));
    }
    std::string text;
    for (const auto& row : rows) {
        std::string blanks;  // written only before more text, so that no line ends with them
        for (std::size_t i = 0; i < row.size(); ++i) {
            const Cell& cell = row[i];
            const std::string rest(widths[i] - width_of(cell.text), ' ');
            const bool is_number = numbers.contains(i);
            if (is_number) blanks += rest;
            if (!cell.text.empty()) {
                text += blanks + cell.colour + cell.text + (*cell.colour ? "\x1b[0m" : "");
                blanks.clear();
            }
            blanks += (is_number ? "" : rest) + "  ";
        }
        text += '\n';
    }
    return text;
}

std::string json_text(const nlohmann::ordered_json& json, int indent) {
    using Json = nlohmann::ordered_json;
    return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ddprun::launcher
