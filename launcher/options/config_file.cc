// Reads a configuration file with toml++.
#include "launcher/options/config_file.h"

#include <algorithm>
#include <charconv>
#include <optional>

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include "base/command_line/nearest.h"

namespace ddprun::launcher {
namespace {

std::string place(const ConfigFile& file, const toml::source_region& at) {
    return file.path + ":" + std::to_string(at.begin.line);
}

// An option that may be in a file is one that a variable can give, too. The others concern one
// start only (--dry-run, --help).
bool may_be_in_file(const OptionRow& row) { return row.pet; }

// The option that was most likely meant by a key that is none; empty: no idea.
std::string_view meant_by(std::string_view name) {
    for (const OtherName& other : other_names())
        if (other.name == name) return other.row;
    std::vector<std::string_view> names;
    for (const OptionRow& row : option_table())
        if (may_be_in_file(row)) names.push_back(row.name);
    return nearest(name, names);
}

// No abbreviations here: a file is written once and read often.
Result<const OptionRow*> find_row(std::string_view key) {
    std::string name(key);
    std::ranges::replace(name, '_', '-');
    for (const OptionRow& row : option_table()) {
        if (row.name != name) continue;
        if (may_be_in_file(row)) return &row;
        return usage_error("this option can be on the command line only; remove the line");
    }
    const std::string_view meant = meant_by(name);
    if (meant.empty())
        return usage_error("no such option; the keys are the names of --help-all without --");
    return usage_error("no such option; did you mean " + std::string(meant) + "?");
}

// A number, a text or a truth value as the command line has it; nothing for another type.
std::optional<std::string> scalar(const toml::node& node) {
    if (const auto* text = node.as_string()) return text->get();
    if (const auto* number = node.as_integer()) return std::to_string(number->get());
    if (const auto* truth = node.as_boolean()) return truth->get() ? "1" : "0";
    const auto* real = node.as_floating_point();
    if (!real) return std::nullopt;
    char text[64];
    const auto end = std::to_chars(text, text + sizeof text, real->get());
    return std::string(text, end.ptr);
}

// The elements of an array with commas between them, for an option that takes such a list.
Result<std::string> list_of(const toml::array& array) {
    std::string text;
    for (const toml::node& node : array) {
        const auto element = node.is_boolean() ? std::nullopt : scalar(node);
        if (!element) return usage_error("its list must have texts and numbers only");
        text += (text.empty() ? "" : ",") + *element;
    }
    return text;
}

Result<std::string> value_of(const OptionRow& row, const toml::node& node) {
    const bool flag = row.placeholder.empty();
    if (flag != node.is_boolean())
        return usage_error(flag ? "takes no value; give true or false"
                                : "give a text or a number, as " + std::string(row.name) + " = \"" +
                                      std::string(row.placeholder) + "\"");
    if (const auto* array = node.as_array(); array && row.placeholder.ends_with(",..."))
        return list_of(*array);
    if (const auto text = scalar(node)) {
        if (text->empty() && !row.may_be_empty)
            return usage_error("the value is empty; remove the line, or give a value");
        return *text;
    }
    return usage_error("give one text or one number");
}

}  // namespace

Result<ConfigRead> read_config(const ConfigFile& file) {
    const toml::parse_result parsed = toml::parse(std::string_view(file.text));
    if (!parsed)
        return usage_error(place(file, parsed.error().source()) +
                           ": not TOML: " + std::string(parsed.error().description()));
    ConfigRead read;
    for (const auto& [key, node] : parsed.table()) {
        const std::string where = place(file, key.source());
        const auto at_key = [&](const Error& error) {
            return where + ": " + std::string(key.str()) + ": " + error.sentence();
        };
        // A section is no misspelt option, so it is told first.
        const Result<const OptionRow*> row =
            node.is_table() ? usage_error(
                                  "is a table; options stand at the top level, without [sections] "
                                  "and dots")
                            : find_row(key.str());
        if (!row) {
            read.unknown.push_back(at_key(row.error()));
            continue;
        }
        auto value = value_of(**row, node);
        if (!value) return usage_error(at_key(value.error()));
        read.values.push_back({*row, where, std::string(key.str()), std::move(*value)});
    }
    // The order of the file: a table of TOML is sorted by name, and label after no-label must win.
    std::ranges::stable_sort(read.values, {}, [&](const ConfigValue& value) {
        return std::stoul(value.where.substr(value.where.rfind(':') + 1));
    });
    return read;
}

}  // namespace ddprun::launcher
