// Breaks lines and escapes words (text_parts.h).
#include "base/command_line/text_parts.h"

#include <algorithm>

namespace ddprun::launcher {
namespace {

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

}  // namespace

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

void append_option(std::string& text, const OptionRow& row) {
    text += "  " + spelling(row);
    append_wrapped(text, description(row));
    text += '\n';
}

void append_brief_option(std::string& text, const OptionRow& row) {
    constexpr std::size_t kTerm = 36, kLongValue = 16;
    OptionRow shown = row;
    if (row.placeholder.size() > kLongValue) shown.placeholder = "KIND";  // a list of words
    std::string term = "  " + spelling(shown);
    term.resize(std::max(term.size() + 1, kTerm), ' ');
    text += term + std::string(row.brief) + "\n";
}

std::string man_option(const OptionRow& row) {
    return ".TP\n.B " + roff(spelling(row)) + "\n" + roff(description(row)) + "\n";
}

// A term in a column of its own if it is short, else on a line of its own.
void append_manual_row(std::string& text, const ManualRow& row) {
    constexpr std::size_t kTerm = 24;
    std::string line = "  " + std::string(row.term);
    if (line.size() + 2 > kTerm) {
        text += line;
        append_wrapped(text, row.what);
    } else {
        line.resize(kTerm, ' ');
        std::string what;
        append_wrapped(what, row.what, kTerm, kColumns);
        text += line + what.substr(1 + kTerm);  // without the first line's break and indent
    }
    text += '\n';
}

std::string man_row(const ManualRow& row) {
    return ".TP\n.B " + roff(row.term) + "\n" + roff(row.what) + "\n";
}

std::string roff(std::string_view text) {
    std::string result;
    for (char c : text) result += c == '-' ? "\\-" : c == '\\' ? "\\e" : std::string(1, c);
    return (result.starts_with('.') || result.starts_with('\'') ? "\\&" : "") + result;
}

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

std::string shell_word(const std::string& word) {
    const bool plain = !word.empty() && word.find_first_not_of(
                                            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                            "0123456789%+,-./:=@_") == std::string::npos;
    return plain ? word : "'" + quoted(word, "", "'\\''") + "'";
}

}  // namespace ddprun::launcher
