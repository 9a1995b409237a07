// Writes --help and the manual page from the option table and the manual's sections.
#include "launcher/options/option_text.h"

#include <algorithm>

#include "launcher/options/manual_sections.h"
#include "launcher/options/option_table.h"

namespace ddprun::launcher {
namespace {

constexpr std::size_t kColumns = 100, kIndent = 8;

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

// A term in a column of its own if it is short, else on a line of its own.
void append_manual_row(std::string& text, const ManualRow& row) {
    constexpr std::size_t kTerm = 24;
    std::string line = "  " + std::string(row.term);
    if (line.size() + 2 > kTerm) {
        text += line;
        append_wrapped(text, row.what, kIndent, kColumns);
    } else {
        line.resize(kTerm, ' ');
        std::string what;
        append_wrapped(what, row.what, kTerm, kColumns);
        text += line + what.substr(1 + kTerm);  // without the first line's break and indent
    }
    text += '\n';
}

// Escapes text for roff: "\-" prints a minus sign that can be copied (a plain "-" is a hyphen), and
// "\&" keeps a line that begins with a dot or quote from being read as a request.
std::string roff(std::string_view text) {
    std::string result;
    for (char c : text) result += c == '-' ? "\\-" : c == '\\' ? "\\e" : std::string(1, c);
    return (result.starts_with('.') || result.starts_with('\'') ? "\\&" : "") + result;
}

}  // namespace

std::string help_text(HelpLength length) {
    std::string text =
        "Usage: srun ddprun [OPTIONS] PROGRAM [ARGUMENTS]\n"
        "       ddprun --standalone [OPTIONS] PROGRAM [ARGUMENTS]\n";
    const bool all = length == HelpLength::all;
    append_wrapped(text, kWhat, 0, kColumns);
    if (all) append_wrapped(text, kSpelling, 0, kColumns);
    text += '\n';
    if (!all) text += "\nThe options that are used most (--help-all has all of them):\n";
    for (const OptionGroup& group : option_groups()) {
        if (all) text += "\n" + std::string(group.title) + ":\n";
        for (const OptionRow& row : group.rows) {
            if (!all && !row.frequent) continue;
            text += "  " + spelling(row);
            append_wrapped(text, description(row), kIndent, kColumns);
            text += '\n';
        }
    }
    for (const ManualSection& section : manual_sections()) {
        if (!all && !section.in_short_help) continue;
        text += "\n" + std::string(section.title) + ":\n";
        for (const ManualRow& row : section.rows) append_manual_row(text, row);
    }
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
    for (const OptionGroup& group : option_groups()) {
        text += ".SS " + std::string(group.title) + "\n";
        for (const OptionRow& row : group.rows)
            text += ".TP\n.B " + roff(spelling(row)) + "\n" + roff(description(row)) + "\n";
    }
    for (const ManualSection& section : manual_sections()) {
        text += ".SH " + std::string(section.heading) + "\n";
        for (const ManualRow& row : section.rows)
            text += ".TP\n.B " + roff(row.term) + "\n" + roff(row.what) + "\n";
    }
    return text;
}

}  // namespace ddprun::launcher
