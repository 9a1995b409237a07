// Replaces $name and ${name} in text, as Python's string.Template does.
#include "base/template_text.h"

#include <algorithm>

namespace ddprun {
namespace {

// The characters of an ASCII identifier, as Python's default pattern has them.
bool in_name(char c, bool first) {
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (!first && c >= '0' && c <= '9');
}

// Returns the name after a dollar sign, and in `taken` how many characters the reference takes
// after the dollar, braces included. Returns an empty name when there is no valid reference, for
// example "${x" without the closing brace.
std::string_view name_behind(std::string_view rest, std::size_t& taken) {
    const bool braced = rest.starts_with('{');
    if (braced) rest.remove_prefix(1);
    std::size_t size = 0;
    while (size < rest.size() && in_name(rest[size], size == 0)) ++size;
    if (braced && (size == rest.size() || rest[size] != '}')) return {};
    taken = size + (braced ? 2 : 0);
    return rest.substr(0, size);
}

// Splits the text into pieces and passes each one to a function: plain text; a reference (its name,
// and its text as written); two dollar signs. Both functions below use it, so they agree on what a
// reference is.
template <class OnText, class OnName, class OnDollars>
void walk(std::string_view text, OnText on_text, OnName on_name, OnDollars on_dollars) {
    while (!text.empty()) {
        const std::size_t dollar = std::min(text.find('$'), text.size());
        on_text(text.substr(0, dollar));
        text.remove_prefix(dollar);
        if (text.empty()) return;
        std::size_t taken = 0;
        const std::string_view name = name_behind(text.substr(1), taken);
        if (text.starts_with("$$")) {
            on_dollars();
            taken = 1;
        } else if (name.empty()) {
            // A single dollar sign without a name stays as it is. Python's safe_substitute() does
            // the same.
            on_text(text.substr(0, 1));
            taken = 0;
        } else {
            on_name(name, text.substr(0, 1 + taken));
        }
        text.remove_prefix(1 + taken);
    }
}

}  // namespace

std::string fill_template(std::string_view text, const TemplateValues& values, bool collapse) {
    std::string result;
    walk(
        text, [&](std::string_view plain) { result += plain; },
        [&](std::string_view name, std::string_view as_it_stands) {
            const auto found = values.find(name);
            // An unknown name stays as written: the worker's own shell may know it.
            result += found == values.end() ? as_it_stands : std::string_view(found->second);
        },
        [&] { result += collapse ? "$" : "$$"; });
    return result;
}

std::vector<std::string> unknown_names(std::string_view text, const TemplateValues& values) {
    std::vector<std::string> unknown;
    walk(
        text, [](std::string_view) {},
        [&](std::string_view name, std::string_view) {
            if (values.find(name) == values.end() &&
                std::ranges::find(unknown, name) == unknown.end())
                unknown.emplace_back(name);
        },
        [] {});
    return unknown;
}

TemplateValues prefix_values(const std::string& role, int local_rank, int rank,
                             const std::string& hostname) {
    return {{"role_name", role},
            {"local_rank", std::to_string(local_rank)},
            {"rank", std::to_string(rank)},
            {"hostname", hostname}};
}

}  // namespace ddprun
