// Writes the completion scripts from the table of commands (ctl_text.h).
#include "base/command_line/text_parts.h"
#include "operator/ddpctl/ctl_text.h"

namespace ddprun::launcher {
namespace {

// "--ledger --json --help", of all commands and of this one.
std::string names_of(std::span<const OptionRow> rows) {
    std::string names;
    for (const auto& some : {rows, rows_of_all()})
        for (const OptionRow& row : some)
            names += (names.empty() ? "--" : " --") + std::string(row.name);
    return names;
}

std::string command_names() {
    std::string names;
    for (const Command& command : commands())
        names += (names.empty() ? "" : " ") + std::string(command.name);
    return names;
}

std::string in_bar(std::string words) {
    for (char& c : words) c = c == ' ' ? '|' : c;
    return words;
}

// bash splits "--opt=va" into three words: "--opt", "=" and "va". The command is the first word
// that is one.
std::string bash() {
    std::string text = R"(_ddpctl() {
    local word=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD-1]} command= i
    if [[ $word == = ]]; then word=
    elif [[ $option == = ]]; then option=${COMP_WORDS[COMP_CWORD-2]}
    fi
    case $option in
        --ledger) COMPREPLY=($(compgen -d -- "$word")); return ;;
        --secret-file) COMPREPLY=($(compgen -f -- "$word")); return ;;
        --print-completion) COMPREPLY=($(compgen -W 'bash zsh fish' -- "$word")); return ;;
    esac
    for ((i = 1; i < COMP_CWORD; ++i)); do
        case ${COMP_WORDS[i]} in )" +
                       in_bar(command_names()) + R"() command=${COMP_WORDS[i]}; break ;; esac
    done
    local words=
    case $command in
        '') words=')" + command_names() +
                       " " + names_of(rows_without_command()) + "' ;;\n";
    for (const Command& command : commands())
        text += "        " + std::string(command.name) + ") words='" + names_of(command.rows) +
                "' ;;\n";
    return text +
           "    esac\n    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n}\n"
           "complete -o filenames -F _ddpctl ddpctl\n";
}

// Arguments of zsh's _arguments; brackets, colons and backslashes have a meaning in them.
std::string zsh_option(const OptionRow& row) {
    std::string action;
    if (!row.placeholder.empty()) {
        action = ":" + quoted(row.placeholder, ":\\", "'\\''") + ":";
        if (!row.choices.empty()) action += "(" + std::string(row.choices) + ")";
        if (is_path(row)) action += row.name == "ledger" ? "_files -/" : "_files";
    }
    return " \\\n    '--" + std::string(row.name) + (row.placeholder.empty() ? "" : "=") + "[" +
           quoted(row.help, "[]:\\", "'\\''") + "]" + action + "'";
}

std::string zsh_options(std::span<const OptionRow> rows) {
    std::string text;
    for (const auto& some : {rows, rows_of_all()})
        for (const OptionRow& row : some) text += zsh_option(row);
    return text;
}

std::string zsh() {
    std::string text = "#compdef ddpctl\nlocal -a commands=(";
    for (const Command& command : commands())
        text += "\n    '" + std::string(command.name) + ":" + quoted(command.what, ":\\", "'\\''") +
                "'";
    text += "\n)\ncase $words[2] in\n";
    for (const Command& command : commands())
        text += std::string(command.name) + ") shift words; (( CURRENT-- )); _arguments" +
                zsh_options(command.rows) + " ;;\n";
    return text + "*) _describe command commands; _arguments" +
           zsh_options(rows_without_command()) + " ;;\nesac\n";
}

std::string fish_option(const OptionRow& row, const std::string& when) {
    std::string text = "complete -c ddpctl" + when + " -l " + std::string(row.name);
    if (row.letter != 0) text += std::string(" -s ") + row.letter;
    if (!row.placeholder.empty()) text += is_path(row) ? " -r -F" : " -x";
    if (!row.choices.empty()) text += " -a '" + std::string(row.choices) + "'";
    return text + " -d '" + quoted(row.help, "\\", "\\'") + "'\n";
}

std::string fish() {
    std::string text = "complete -c ddpctl -e\ncomplete -c ddpctl -f\n";
    for (const OptionRow& row : rows_of_all()) text += fish_option(row, "");
    for (const OptionRow& row : rows_without_command())
        text += fish_option(row, " -n __fish_use_subcommand");
    for (const Command& command : commands()) {
        const std::string name(command.name);
        text += "complete -c ddpctl -n __fish_use_subcommand -a " + name + " -d '" +
                quoted(command.what, "\\", "\\'") + "'\n";
        for (const OptionRow& row : command.rows)
            text += fish_option(row, " -n '__fish_seen_subcommand_from " + name + "'");
    }
    return text;
}

}  // namespace

std::string ctl_completion(std::string_view shell) {
    return shell == "bash" ? bash() : shell == "zsh" ? zsh() : fish();
}

}  // namespace ddprun::launcher
