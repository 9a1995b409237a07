// Writes --help, the manual page and the completion scripts from the option table.
#include "launcher/options/option_text.h"

#include <algorithm>

#include "launcher/options/option_table.h"

namespace ddprun::launcher {
namespace {

// The two paragraphs at the top of --help and of the manual page.
constexpr const char* kWhat =
    "Starts one worker for each GPU on every node, with RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR "
    "and MASTER_PORT. When one worker fails, all are started again. A PROGRAM whose name ends in "
    ".py is run with Python. Options end at PROGRAM: everything after it goes to the program.";
constexpr const char* kSpelling =
    "ddprun takes torchrun's options and has some more. In names, _ and - are the same. An option "
    "may be abbreviated as long as the abbreviation fits one option only. PET_NNODES=2 means "
    "--nnodes=2, and so on. If you do not set OMP_NUM_THREADS, it is each worker's share of the "
    "CPUs; torchrun's is 1, which leaves the other CPUs idle. Called by the name torchrun (a "
    "link), ddprun has torchrun's defaults for --nproc-per-node, --max-restarts and "
    "OMP_NUM_THREADS, and runs every program with Python unless --no-python is given.";

// Appends words, broken into lines of at most `columns` with `indent` blanks in front. It always
// begins with a new line.
void append_wrapped(std::string& text, std::string_view words, std::size_t indent,
                    std::size_t columns) {
    std::size_t column = columns;
    while (!words.empty()) {
        std::size_t end = std::min(words.find(' '), words.size());
        if (column + 1 + end > columns) {
            text += '\n' + std::string(indent, ' ');
            column = indent;
        } else {
            text += ' ';
            ++column;
        }
        text += words.substr(0, end);
        column += end;
        words.remove_prefix(std::min(end + 1, words.size()));
    }
}

// "-r, --redirects=DIGIT", or "--check[=text|json]" where the value may be left out.
std::string spelling(const OptionRow& row) {
    std::string text;
    if (row.letter != 0) text += std::string("-") + row.letter + ", ";
    text += "--" + std::string(row.name);
    const std::string value = "=" + std::string(row.placeholder);
    if (!row.placeholder.empty()) text += row.implied.empty() ? value : "[" + value + "]";
    return text;
}

std::string description(const OptionRow& row) {
    std::string text(row.help);
    if (row.kind == OptionKind::ignored) return "Accepted, no effect: " + text;
    if (!row.default_text.empty()) text += ". Default: " + std::string(row.default_text);
    if (!row.differs.empty()) text += ". torchrun's is " + std::string(row.differs);
    return text;
}

// Calls write_title(text) at the start of each group, and write_row(row) for each option.
template <class Title, class Row>
void for_each_option(const Title& write_title, const Row& write_row) {
    for (const OptionGroup& group : option_groups()) {
        write_title(group.title);
        for (const OptionRow& row : group.rows) write_row(row);
    }
}

// Escapes text for roff: "\-" prints a minus sign that can be copied (a plain "-" is a hyphen), and
// "\&" keeps a line that begins with a dot or quote from being read as a request.
std::string roff(std::string_view text) {
    std::string result;
    for (char c : text) result += c == '-' ? "\\-" : c == '\\' ? "\\e" : std::string(1, c);
    return (result.starts_with('.') || result.starts_with('\'') ? "\\&" : "") + result;
}

// Escapes text for a string in single quotes: a quote itself is replaced by `quote`, since shells
// differ in how they write it, and each character of `escaped` gets a backslash.
std::string quoted(std::string_view text, std::string_view escaped, std::string_view quote) {
    std::string result;
    for (char c : text) {
        if (c == '\'')
            result += quote;
        else
            result += (escaped.find(c) != std::string_view::npos ? "\\" : "") + std::string(1, c);
    }
    return result;
}

bool is_path(const OptionRow& row) { return row.placeholder == "PATH"; }

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

std::string help_text() {
    constexpr std::size_t kColumns = 100, kIndent = 8;
    std::string text =
        "Usage: srun ddprun [OPTIONS] PROGRAM [ARGUMENTS]\n"
        "       ddprun --standalone [OPTIONS] PROGRAM [ARGUMENTS]\n";
    append_wrapped(text, kWhat, 0, kColumns);
    append_wrapped(text, kSpelling, 0, kColumns);
    text += '\n';
    for_each_option([&](std::string_view group) { text += "\n" + std::string(group) + ":\n"; },
                    [&](const OptionRow& row) {
                        text += "  " + spelling(row);
                        append_wrapped(text, description(row), kIndent, kColumns);
                        text += '\n';
                    });
    return text;
}

std::string man_page(std::string_view version) {
    std::string text =
        ".TH DDPRUN 1 \"\" \"ddprun " + std::string(version) +
        "\" \"User Commands\"\n.SH NAME\nddprun \\- start the workers of a training job on all "
        "nodes, and again when one fails\n.SH SYNOPSIS\n"
        ".B srun ddprun\n[\\fIOPTIONS\\fR] \\fIPROGRAM\\fR [\\fIARGUMENTS\\fR]\n.br\n"
        ".B ddprun \\-\\-standalone\n[\\fIOPTIONS\\fR] \\fIPROGRAM\\fR [\\fIARGUMENTS\\fR]\n.SH "
        "DESCRIPTION\n" +
        roff(kWhat) + "\n.PP\n" + roff(kSpelling) + "\n.SH OPTIONS\n";
    for_each_option([&](std::string_view group) { text += ".SS " + std::string(group) + "\n"; },
                    [&](const OptionRow& row) {
                        text +=
                            ".TP\n.B " + roff(spelling(row)) + "\n" + roff(description(row)) + "\n";
                    });
    text += ".SH ENVIRONMENT\n";
    // Variables that are not made from the option table.
    const char* const kVariables[][2] = {
        {"PET_NAME",
         "means the option --name; the command line wins; 0 or 1 for an option without a value; an "
         "empty variable counts as not set"},
        {"PYTHON_EXEC, VIRTUAL_ENV",
         "the interpreter for Python programs, if --python is not given"},
        {"CUDA_VISIBLE_DEVICES", "the GPUs that are counted, in the order of local ranks"},
        {"OMP_NUM_THREADS", "kept if set; else each worker's share of the node's CPUs"},
        {"LOGLEVEL",
         "DEBUG means --verbose, WARNING means --quiet, ERROR logs errors only; the options win"},
        {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "means --shutdown-timeout, which wins"},
        {"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", "means --log-line-prefix-template, which wins"},
        {"TORCHELASTIC_ENABLE_FILE_TIMER",
         "with 1 ddprun serves the workers' file timers, as torchrun does"},
    };
    for (const auto& [name, what] : kVariables)
        text += ".TP\n.B " + roff(name) + "\n" + roff(what) + "\n";
    text += ".SH EXIT STATUS\n";
    const char* const kCodes[][2] = {
        {"0", "all workers have exited with 0"},
        {"N",
         "the exit code of the first worker that failed, on every node; 128+N if signal N ended "
         "it"},
        {"2", "a wrong command line"},
        {"69", "the nodes could not meet or could not continue"},
        {"70", "a fault of ddprun itself"},
        {"75", "stopped by a time limit, preemption or drain, with work left; start the job again"},
        {"124", "the job hung (--hang-timeout)"},
        {"126", "the program, or ddprun itself, cannot run here: limits, permissions"},
        {"128+N", "stopped by signal N"},
    };
    for (const auto& [code, what] : kCodes)
        text += ".TP\n.B " + roff(code) + "\n" + roff(what) + "\n";
    return text;
}

std::string completion(std::string_view shell, std::string_view name) {
    const std::string command(name);
    if (shell == "bash") return bash_completion(command);
    if (shell == "zsh") return zsh_completion(command);
    if (shell == "fish") return fish_completion(command);
    return tcsh_completion(command);
}

}  // namespace ddprun::launcher
