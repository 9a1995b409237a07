// The options that only print a text. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/release.h"
#include "launcher/options/options.h"

namespace ddprun::launcher {

// The text that the options ask for instead of a start; nothing: they ask for none. `name` is the
// command that completion is for; `environment` is what a batch script will have to set up.
std::optional<std::string> printed_text(const Options& options, const Environment& environment,
                                        const Release& release, std::string_view name);

}  // namespace ddprun::launcher
