// A number with its noun: "1 node", "2 nodes". Pure.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace ddprun {

template <std::integral Number>
std::string count_text(Number count, std::string_view noun) {
    return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

}  // namespace ddprun
