// Metadata: what a program stores beside the tensors of a snapshot: position in the data, seed,
// settings, state of random generators. Values have types; they are stored as text, which
// Python's json module reads too:
//
//   Metadata words{{"epoch", text_of(3)}, {"best", text_of(0.25)}, {"random", text_of(bytes)}};
//   auto epoch = value_of<std::int64_t>(words, "epoch");
//
// Numbers come back with the same bits, also infinities. (Of a NaN only that it is one.) Snapshots
// of programs that wrote their numbers as text themselves are read alike. Pure.
//
// Errors: not_found (no such key), malformed (not a value of this type); the sentence names the key
// and the value.
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace ddprun::trainer {

using Metadata = std::map<std::string, std::string>;

// A number as text: the shortest text that gives the same bits when it is read.
template <class T>
requires std::integral<T> || std::floating_point<T> std::string text_of(T value) {
    if constexpr (std::same_as<T, bool>) {
        return value ? "1" : "0";
    } else {
        char text[64];
        return {text, std::to_chars(text, text + sizeof text, value).ptr};
    }
}

// Bytes as text: two hexadecimal digits each.
std::string text_of(std::span<const std::byte> bytes);

// The text of a key.
Result<std::string> text_at(const Metadata& metadata, const std::string& key);

// The bytes of a key.
Result<std::vector<std::byte>> bytes_at(const Metadata& metadata, const std::string& key);

// The error for a text that is no value of the wanted type.
Error wrong_value(const std::string& key, std::string_view text, const char* wanted);

// A number: value_of<std::int64_t>, value_of<double>, …
template <class T>
requires std::integral<T> || std::floating_point<T> Result<T> value_of(const Metadata& metadata,
                                                                       const std::string& key) {
    auto text = text_at(metadata, key);
    if (!text) return text.error();
    const char *begin = text->data(), *end = begin + text->size();
    if constexpr (std::same_as<T, bool>) {
        if (*text == "0" || *text == "1") return *text == "1";
        return wrong_value(key, *text, "0 or 1");
    } else {
        T value{};
        const auto [stop, problem] = std::from_chars(begin, end, value);
        if (problem == std::errc{} && stop == end) return value;
        return wrong_value(key, *text,
                           std::integral<T> ? "a whole number that fits" : "a number that fits");
    }
}

}  // namespace ddprun::trainer
