// Writes the completion scripts from the option table.
#include "launcher/options/completion.h"

#include "base/command_line/text_parts.h"
#include "launcher/options/option_table.h"

namespace ddprun::launcher {
namespace {

// The names of some options as a pattern of bash's `case`: "--tee|-t|--redirects|-r".
std::string options_with(bool (*belongs)(const OptionRow&)) {
    std::string names;
    for (const OptionRow& row : option_table()) {
        if (!belongs(row)) continue;
        names += (names.empty() ? "--" : "|--") + std::string(row.name);
        if (row.letter != 0) names += std::string("|-") + row.letter;
    }
    return names;
}

// Options with an implied value take a value only behind "=". The word after them may be the
// program.
std::string bash_implied() {
    std::string text;
    for (const OptionRow& row : option_table())
        if (!row.implied.empty()) text += " && $before != --" + std::string(row.name);
    return text;
}

// A bash function. bash splits `--opt=va` into three words: "--opt", "=" and "va". So the script
// looks back one or two words to find the option whose value is being typed. Parts in this order:
// choices of an option, paths, other values (nothing to offer), then option names or files.
std::string bash_completion(const std::string& name) {
    std::string text = "_" + name + R"(() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} option=
    if [[ $word == = ]]; then option=$before word=
    elif [[ $before == = ]]; then option=${COMP_WORDS[COMP_CWORD-2]}
    elif [[ $before == -*)" +
                       bash_implied() + R"( ]]; then option=$before
    fi
    case ${option//_/-} in
)";
    for (const OptionRow& row : option_table()) {
        // Options with a fixed set of values get one `case` branch each.
        if (row.choices.empty()) continue;
        text += "        --" + std::string(row.name);
        if (row.letter != 0) text += std::string("|-") + row.letter;
        text += ") COMPREPLY=($(compgen -W '" + std::string(row.choices) +
                "' -- \"$word\")); return ;;\n";
    }
    text += "        " + options_with([](const OptionRow& row) { return is_path(row); }) +
            ") COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n        " +
            options_with([](const OptionRow& row) {
                return row.choices.empty() && !row.placeholder.empty() && !is_path(row);
            }) +
            ") COMPREPLY=(); return ;;\n    esac\n    if [[ $word == -* ]]; then "
            "COMPREPLY=($(compgen -W '";
    for (const OptionRow& row : option_table()) text += "--" + std::string(row.name) + " ";
    text.back() = '\'';
    return text + " -- \"$word\"))\n    else COMPREPLY=($(compgen -f -- \"$word\"))\n    fi\n}\n" +
           "complete -o filenames -F _" + name + " " + name + "\n";
}

// Arguments of zsh's _arguments: '--name=[help]:placeholder:(choices)'. "=-" means that the value
// must follow the "=", and "::" that it may be missing. -S ends options at "--".
std::string zsh_completion(const std::string& name) {
    std::string text = "#compdef " + name + "\n_arguments -S";
    for (const OptionRow& row : option_table()) {
        // Brackets, colons and backslashes have a meaning in the argument of _arguments.
        const std::string help = "[" + quoted(row.help, "[]:\\", "'\\''") + "]";
        const std::string value = quoted(row.placeholder, ":\\", "'\\''");
        const bool implied = !row.implied.empty();
        std::string action = (implied ? "::" : ":") + value + ":";
        if (!row.choices.empty()) action += "(" + std::string(row.choices) + ")";
        if (is_path(row)) action += "_files";
        const bool none = row.placeholder.empty();
        if (none) action.clear();
        text += " \\\n    '--" + std::string(row.name) +
                (none      ? ""
                 : implied ? "=-"
                           : "=") +
                help + action + "'";
        if (row.letter != 0)
            text +=
                std::string(" \\\n    '-") + row.letter + (none ? "" : "+") + help + action + "'";
    }
    return text + " \\\n    '(-)1:program:_files' '*::arguments:_files'\n";
}

// One `complete` command for each option: -x needs a value that is no file, -r -F needs a file.
std::string fish_completion(const std::string& name) {
    std::string text = "complete -c " + name + " -e\n";
    for (const OptionRow& row : option_table()) {
        text += "complete -c " + name + " -l " + std::string(row.name);
        if (row.letter != 0) text += std::string(" -s ") + row.letter;
        if (!row.placeholder.empty() && row.implied.empty())
            text += is_path(row) ? " -r -F" : " -x";
        if (!row.choices.empty()) text += " -a '" + std::string(row.choices) + "'";
        text += " -d '" + quoted(row.help, "\\", "\\'") + "'\n";
    }
    return text;
}

// tcsh patterns: 'n/--opt/(list)/' is for the next word, 'c/--/(list)/' completes an option's name.
std::string tcsh_completion(const std::string& name) {
    std::string text = "complete " + name;
    std::string names;
    for (const OptionRow& row : option_table()) {
        names += std::string(names.empty() ? "" : " ") + std::string(row.name);
        if (!row.choices.empty() && row.implied.empty())
            text += " 'n/--" + std::string(row.name) + "/(" + std::string(row.choices) + ")/'";
        else if (is_path(row))
            text += " 'n/--" + std::string(row.name) + "/f/'";
    }
    return text + " 'c/--/(" + names + ")/' 'p/*/f/'\n";
}

}  // namespace

std::string completion(std::string_view shell, std::string_view name) {
    const std::string command(name);
    if (shell == "bash") return bash_completion(command);
    if (shell == "zsh") return zsh_completion(command);
    if (shell == "fish") return fish_completion(command);
    return tcsh_completion(command);
}

}  // namespace ddprun::launcher
