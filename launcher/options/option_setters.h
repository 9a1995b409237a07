// What each option of the table does to Options: one line an option. Pure. Errors: usage, the
// sentence without the option's name, which the caller knows as the user wrote it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "launcher/options/options.h"

namespace ddprun::launcher {

using OptionSetter = std::optional<Error> (*)(Options& options, const std::string& value);

// Of an option of the kind `value`, and of one that is checked before it is ignored; null: none.
OptionSetter option_setter(std::string_view name);

void set_flag(Options& options, std::string_view name);

// As torchrun's may be: empty is the same as not given.
bool may_be_empty(std::string_view name);

}  // namespace ddprun::launcher
