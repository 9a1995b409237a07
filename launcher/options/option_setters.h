// The setters that several rows of the option table share: each reads a value and stores it in one
// member of Options. A setter that only one option needs stands beside its row.
//
// Errors: usage. The sentence does not contain the option's name; the caller puts the user's
// spelling in front. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "base/command_line/option_row.h"
#include "launcher/options/option_values.h"
#include "launcher/options/options.h"

namespace ddprun::launcher {

// Stores a value that could be read, or passes its error on. `target` is unchanged on an error.
template <class Target, class Value>
MaybeError store(Target& target, Result<Value> value) {
    if (!value) return value.error();
    target = std::move(*value);
    return std::nullopt;
}

// Any type of value, by its reader (option_values.h).
template <auto kMember, auto kRead>
MaybeError into(Options& options, const std::string& value) {
    return store(options.*kMember, kRead(value));
}

// The text as it is.
template <auto kMember>
MaybeError text(Options& options, const std::string& value) {
    options.*kMember = value;
    return std::nullopt;
}

// A whole number from kLeast to kMost.
template <auto kMember, int kLeast, int kMost>
MaybeError number(Options& options, const std::string& value) {
    return store(options.*kMember, read_int(value, kLeast, kMost));
}

// A time that must not be below a minimum.
template <auto kMember, int kLeastSeconds>
MaybeError seconds(Options& options, const std::string& value) {
    const auto time = read_seconds(value);
    if (time && *time < std::chrono::seconds(kLeastSeconds))
        return usage_error("too short; give " + std::to_string(kLeastSeconds) +
                           (kLeastSeconds == 1 ? " second or more" : " seconds or more"));
    return store(options.*kMember, time);
}

// Options without a value.
template <auto kMember>
MaybeError on(Options& options, const std::string&) {
    options.*kMember = true;
    return std::nullopt;
}
template <auto kMember>
MaybeError off(Options& options, const std::string&) {
    options.*kMember = false;
    return std::nullopt;
}

}  // namespace ddprun::launcher
