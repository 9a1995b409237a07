// What several of ddpctl's texts are made of. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

namespace ddprun::launcher {

struct Cell {
    std::string text;
    const char* colour = "";  // what switches it on in a terminal; "": none
};
// Lays out rows below each other. `numbers`: the columns that are aligned to the right.
std::string table_text(const std::vector<std::vector<Cell>>& rows,
                       const std::set<std::size_t>& numbers = {});

// With a line end. Names and output of workers may have bytes that are not UTF-8; they are
// replaced. `indent` as for json::dump: -1 for one line.
std::string json_text(const nlohmann::ordered_json& json, int indent = 2);

}  // namespace ddprun::launcher
