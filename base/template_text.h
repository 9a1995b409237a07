// Fills in text with $name and ${name}, with the rules of Python's
// string.Template.safe_substitute(), because torchrun reads its templates this way. Unknown names
// stay as they are. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ddprun {

// Name to value.
using TemplateValues = std::map<std::string, std::string, std::less<>>;

// With `collapse`, "$$" becomes "$"; otherwise it stays "$$".
std::string fill_template(std::string_view text, const TemplateValues& values, bool collapse);

// The names in the text that `values` does not have, each once, in order of appearance.
std::vector<std::string> unknown_names(std::string_view text, const TemplateValues& values);

// The names that --log-line-prefix-template may use, with their values for one worker.
TemplateValues prefix_values(const std::string& role, int local_rank, int rank,
                             const std::string& hostname);

}  // namespace ddprun
