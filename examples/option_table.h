// The options of a worker program as a table, and the command line that is read by it. Pure.
//
// Errors: usage, one line that names the option and the value.
#pragma once

#include <charconv>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "examples/needs.h"

namespace example {

// Puts the text of a value into the options. False if the text is not a valid value.
template <class Options>
using Setter = std::function<bool(Options&, const std::string&)>;

// A number from `least` to `most`. The whole text must be the number.
template <class Options, class T>
Setter<Options> number(T Options::*field, double least, double most) {
    return [=](Options& options, const std::string& text) {
        T value{};
        // from_chars() does not depend on the locale and accepts no spaces.
        auto [stop, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
        // In this form a NaN fails too: it is neither above nor below anything.
        const bool inside =
            static_cast<double>(value) >= least && static_cast<double>(value) <= most;
        options.*field = value;
        return problem == std::errc{} && stop == text.data() + text.size() && inside;
    };
}

// A text that is not empty.
template <class Options>
Setter<Options> text(std::string Options::*field) {
    return [=](Options& options, const std::string& value) {
        options.*field = value;
        return !value.empty();
    };
}

// One of several words.
template <class Options, class T>
Setter<Options> word(T Options::*field, std::map<std::string, T> words) {
    return [=](Options& options, const std::string& name) {
        auto it = words.find(name);
        if (it != words.end()) options.*field = it->second;
        return it != words.end();
    };
}

// Reads `arguments` (without the program's name): `--name value` and `--name=value`. Sets the
// member `help` for --help and -h, which win over everything after them. `program`: for messages.
// Refuses an option that has no effect beside the others, by `needs`.
template <class Options>
ddprun::Result<Options> parse_options(const std::map<std::string, Setter<Options>>& setters,
                                      const std::vector<std::string>& arguments,
                                      const std::string& program, const Needs<Options>& needs) {
    Options options;
    std::set<std::string> given;
    auto wrong = [&](const std::string& sentence) {
        return ddprun::usage_error(sentence + "; see " + program + " --help");
    };
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        if (arguments[i] == "--help" || arguments[i] == "-h") {
            options.help = true;
            return options;
        }
        const auto equals = arguments[i].find('=');
        const std::string name = arguments[i].substr(0, equals);
        auto setter = setters.find(name);
        if (setter == setters.end()) return wrong("unknown option \"" + arguments[i] + "\"");
        if (equals == std::string::npos && i + 1 == arguments.size())
            return wrong(name + " needs a value");
        const std::string value =
            equals == std::string::npos ? arguments[++i] : arguments[i].substr(equals + 1);
        if (!setter->second(options, value)) return wrong(name + " cannot be \"" + value + "\"");
        given.insert(name);
    }
    if (auto good = check_needs(needs, given, options); !good)
        return wrong(good.error().sentence());
    return options;
}

}  // namespace example
