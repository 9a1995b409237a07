// What each option does to Options: one setter for each option that takes a value. Pure.
//
// Errors: usage. The sentence does not contain the option's name; the caller puts the user's
// spelling in front.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "launcher/options/options.h"

namespace ddprun::launcher {

// Reads the value and stores it. Returns nothing on success.
using OptionSetter = std::optional<Error> (*)(Options& options, const std::string& value);

// The setter of an option that takes a value, or of an ignored option whose value is checked. Null:
// there is none.
OptionSetter option_setter(std::string_view name);

// Sets what an option without a value sets. An unknown name has no effect.
void set_flag(Options& options, std::string_view name);

// Whether an empty value is accepted and means "not given". torchrun accepts it for these options.
bool may_be_empty(std::string_view name);

}  // namespace ddprun::launcher
