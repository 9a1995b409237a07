// Looks at names, sizes and texts.
#include "trainer/snapshot/format/savable.h"

#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "base/count_text.h"
#include "base/printable.h"

namespace ddprun::trainer {
namespace {

// "[0:4, 8:16]" at the end.
bool ends_as_a_slice(std::string_view name) {
    const auto bracket = name.rfind('[');
    if (bracket == std::string_view::npos || !name.ends_with(']')) return false;
    std::string_view ranges = name.substr(bracket + 1);
    const auto skip = [&](std::string_view what) {
        const bool there = ranges.starts_with(what);
        if (there) ranges.remove_prefix(what.size());
        return there;
    };
    const auto skip_number = [&] {
        const auto digits = std::min(ranges.find_first_not_of("0123456789"), ranges.size());
        ranges.remove_prefix(digits);
        return digits > 0;
    };
    do {
        if (!skip_number() || !skip(":") || !skip_number()) return false;
    } while (skip(", "));
    return ranges == "]";
}

Result<void> check_data(const TensorView& tensor) {
    const std::string name = "tensor \"" + tensor.name + "\"";
    if (tensor.place && !lies_in({tensor.place->offset, tensor.shape}, tensor.place->whole))
        return usage_error("the slice " + describe_extents(tensor.shape) + " of " + name + " at " +
                           describe_extents(tensor.place->offset) + " does not lie in the whole " +
                           describe_extents(tensor.place->whole));
    auto bytes = elements_of(tensor.shape);
    if (bytes && !__builtin_mul_overflow(*bytes, size_of(tensor.type), &*bytes) &&
        *bytes == tensor.data.size())
        return {};
    return usage_error(name + " is " + describe_shape(tensor.type, tensor.shape) + ", but has " +
                       count_text(tensor.data.size(), "byte") + " of data");
}

// JSON's own check.
bool is_utf8(const std::string& text) {
    try {
        (void)nlohmann::json(text).dump();
        return true;
    } catch (const nlohmann::json::exception&) {
        return false;
    }
}

}  // namespace

Result<void> check_name(const std::string& tensor) {
    const std::string name = "tensor \"" + printable(tensor) + "\"";
    if (printable(tensor) != tensor)
        return usage_error(name +
                           " cannot be saved under this name, which has control characters or "
                           "bytes that are no UTF-8; name it in plain text");
    if (tensor == "__metadata__")
        return usage_error(name +
                           " cannot be saved under this name, which safetensors keeps for itself; "
                           "choose another");
    if (ends_as_a_slice(tensor))
        return usage_error(name +
                           " cannot be saved under this name, which is that of a slice in a file; "
                           "choose another, or save it with slice_of()");
    return {};
}

Result<void> check_savable(const std::vector<TensorView>& tensors) {
    std::set<std::string> keys;
    for (const auto& tensor : tensors) {
        if (auto good = check_name(tensor.name); !good) return good;
        if (auto good = check_data(tensor); !good) return good;
        if (tensor.is_nothing()) continue;
        const std::string key = key_of(tensor);
        if (!keys.insert(key).second)
            return usage_error("tensor \"" + key + "\" occurs twice; give each a name of its own");
    }
    return {};
}

Result<void> check_savable(const Metadata& metadata) {
    for (const auto& [key, value] : metadata)
        if (!is_utf8(key) || !is_utf8(value))
            return usage_error("the metadata \"" + printable(key) +
                               "\" cannot be saved: its key or value is no UTF-8; store bytes as "
                               "text_of() writes them");
    return {};
}

}  // namespace ddprun::trainer
