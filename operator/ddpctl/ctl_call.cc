// Finds the command, and reads its options (ctl_call.h).
#include "operator/ddpctl/ctl_call.h"

#include <charconv>
#include <utility>

#include "base/command_line/nearest.h"

namespace ddprun::launcher {
namespace {

Grammar grammar_of(std::span<const OptionRow> more, bool ends_at_word) {
    Grammar grammar;
    for (const OptionRow& row : rows_of_all()) grammar.rows.push_back(&row);
    for (const OptionRow& row : more) grammar.rows.push_back(&row);
    grammar.ends_at_word = ends_at_word;
    return grammar;
}

Result<> add(CtlCall& call, const std::vector<GivenOption>& options) {
    for (const GivenOption& given : options) {
        if (given.value.empty())
            return usage_error(given.spelling +
                               "=: the value is empty; is a variable in your script not set?");
        if (given.row->closed)
            if (const auto wrong = check_choice(*given.row, given.value))
                return usage_error(given.spelling + "=" + given.value + ": " + wrong->sentence());
        call.options.push_back(given);
    }
    return {};
}

Error no_command(const std::string& word) {
    std::vector<std::string_view> names;
    for (const Command& command : commands()) names.push_back(command.name);
    const std::string_view meant = nearest(word, names);
    return usage_error(
        word + ": no such command; " +
        (meant.empty() ? "see ddpctl --help" : "did you mean " + std::string(meant) + "?"));
}

// "status, top, ... or forget".
std::string listed_commands() {
    std::string names;
    for (const Command& command : commands()) {
        const bool last = &command == &commands().back();
        names += (names.empty() ? "" : last ? " or " : ", ") + std::string(command.name);
    }
    return names;
}

}  // namespace

std::string CtlCall::value(std::string_view option) const {
    const GivenOption* given = find(option);
    return given ? given->value : "";
}

const GivenOption* CtlCall::find(std::string_view option) const {
    const GivenOption* found = nullptr;
    for (const GivenOption& given : options)
        if (given.row->name == option) found = &given;
    return found;
}

Result<CtlCall> read_call(const std::vector<std::string>& words) {
    CtlCall call;
    const auto before = split_words(words, grammar_of(rows_without_command(), true));
    if (!before) return before.error();
    if (const auto good = add(call, before->options); !good) return good.error();
    if (!call.options.empty() && only_prints(*call.options.back().row)) return call;
    if (before->the_rest.empty())
        return usage_error("the command is missing: " + listed_commands() + "; see ddpctl --help");
    call.command = find_command(before->the_rest.front());
    if (!call.command) return no_command(before->the_rest.front());

    const std::vector<std::string> rest(before->the_rest.begin() + 1, before->the_rest.end());
    auto behind = split_words(rest, grammar_of(call.command->rows, false));
    if (!behind) return behind.error();
    if (const auto good = add(call, behind->options); !good) return good.error();
    call.words = std::move(behind->the_rest);
    if (!call.has("help") && call.command->words.empty() && !call.words.empty())
        return usage_error(call.words.front() + ": " + std::string(call.command->name) +
                           " takes options only; see ddpctl " + std::string(call.command->name) +
                           " --help");
    return call;
}

Result<Duration> read_age(std::string_view text) {
    using namespace std::chrono;
    constexpr std::int64_t kMostSeconds = std::int64_t{100} * 366 * 24 * 3600;
    const Error wrong = usage_error("not an age; give a whole number and s, m, h or d, like 30d");
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end + 1 != text.data() + text.size() || number < 0) return wrong;
    const std::int64_t unit = *end == 's'   ? 1
                              : *end == 'm' ? 60
                              : *end == 'h' ? 3600
                              : *end == 'd' ? 24 * 3600
                                            : 0;
    if (unit == 0) return wrong;
    if (number > kMostSeconds / unit) return usage_error("above 100 years");
    return Duration{seconds{number * unit}};
}

}  // namespace ddprun::launcher
