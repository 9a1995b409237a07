// A value that a dry run may not know yet. A plain value.
#pragma once

#include <optional>
#include <string>
#include <utility>

namespace ddprun::launcher {

// A value that may be unknown or conditional:
//
//   value, no note     it is so
//   value and note     it is so if the note holds: "if all 4 nodes come"
//   no value           unknown; the note says when or where it is found
template <class T>
struct Known {
    std::optional<T> value;
    std::string note;  // empty: the value is certain
    bool operator==(const Known&) const = default;
};

// The value with the condition on which it holds, or no value if there is a reason why it is
// unknown.
template <class T>
Known<T> with_doubt(T value, const std::string& unknown, const std::string& condition) {
    if (!unknown.empty()) return {std::nullopt, unknown};
    return {std::move(value), condition};
}

}  // namespace ddprun::launcher
