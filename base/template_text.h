// Text with ${names} in it, as Python's string.Template reads it, for torchrun takes its templates
// so: ${name} and $name. Names that are not known stay as they are. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ddprun {

using TemplateValues = std::map<std::string, std::string, std::less<>>;

// `collapse`: two dollars become one.
std::string fill_template(std::string_view text, const TemplateValues& values, bool collapse);

// The names in the text that are none of `values`, each once.
std::vector<std::string> unknown_names(std::string_view text, const TemplateValues& values);

// What may stand in --log-line-prefix-template, for a worker.
TemplateValues prefix_values(const std::string& role, int local_rank, int rank,
                             const std::string& hostname);

}  // namespace ddprun
