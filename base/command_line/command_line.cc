// The splitter behind command_line.h: long options, letters, abbreviations, and helpful refusals.
#include "base/command_line/command_line.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/command_line/nearest.h"

namespace ddprun::launcher {
namespace {

// argparse's rule for a word that could be an option or a value. A lone dash, a negative number,
// and a word with a blank in it are values.
bool looks_like_option(std::string_view word) {
    if (word.size() < 2 || word[0] != '-' || word.find(' ') != std::string_view::npos) return false;
    return word.substr(1).find_first_not_of("0123456789.") != std::string_view::npos;
}

constexpr const char* kNoSuchOption = ": no such option; see --help";

bool takes_value(const OptionRow& row) { return !row.placeholder.empty(); }

// Walks over the words once. `at_` is the next word to read.
class Splitter {
  public:
    Splitter(const std::vector<std::string>& words, const Grammar& grammar)
        : words_(words), grammar_(grammar) {}

    Result<SplitWords> run() {
        while (at_ < words_.size()) {
            const std::string& word = words_[at_];
            if (word == "--") {
                ++at_;
                break;
            }
            if (word.size() < 2 || word[0] != '-') {
                if (grammar_.ends_at_word) break;
                result_.the_rest.push_back(words_[at_++]);
                continue;
            }
            ++at_;
            auto error = word[1] == '-' ? read_long(word) : read_letters(word);
            if (error) return *error;
            if (only_prints(*result_.options.back().row)) return std::move(result_);
        }
        result_.the_rest.insert(result_.the_rest.end(),
                                words_.begin() + static_cast<std::ptrdiff_t>(at_), words_.end());
        return std::move(result_);
    }

  private:
    std::optional<Error> read_long(const std::string& word) {
        std::size_t equals = word.find('=');
        std::string spelling = word.substr(0, equals);
        std::optional<std::string> value;
        if (equals != std::string::npos) value = word.substr(equals + 1);
        auto row = find_long(spelling);
        if (!row) return row.error();
        return take(**row, spelling, std::move(value));
    }

    // Finds the option for a long name. An exact name wins over an abbreviation. Among
    // abbreviations torchrun's options win over ddprun's own, so that every command line that
    // torchrun accepts keeps its meaning.
    Result<const OptionRow*> find_long(const std::string& spelling) {
        std::string name = spelling.substr(2);
        // torchrun accepts both spellings of each name.
        for (char& c : name) c = c == '_' ? '-' : c;
        std::vector<const OptionRow*> theirs, all;
        for (const OptionRow* row : grammar_.rows) {
            if (row->name == name) return row;
            if (name.empty() || !row->name.starts_with(name)) continue;
            all.push_back(row);
            if (row->torchrun) theirs.push_back(row);
        }
        if (all.empty()) return find_other(spelling, name);
        // An abbreviation that only one of torchrun's options fits is no error, even if several of
        // ours fit as well.
        if (theirs.size() == 1) return theirs[0];
        if (all.size() == 1) return all[0];
        std::string names;
        for (std::size_t i = 0; i < all.size(); ++i)
            names += (i == 0                ? "--"
                      : i + 1 == all.size() ? " or --"
                                            : ", --") +
                     std::string(all[i]->name);
        return usage_error(spelling + ": ambiguous; write " + names);
    }

    // Handles a name that is no option of ours. It may be an old name (accepted with a warning),
    // the name of another launcher (refused, with our name for it), or a typing error (refused,
    // with the nearest name).
    Result<const OptionRow*> find_other(const std::string& spelling, const std::string& name) {
        std::vector<std::string_view> names;
        for (const OptionRow* row : grammar_.rows) names.push_back(row->name);
        std::string_view meant = nearest(name, names);
        for (const OtherName& other : grammar_.other_names) {
            if (other.name != name) continue;
            meant = other.row;
            if (!other.accepted) break;
            result_.warnings.push_back(spelling + " is an old name; write --" +
                                       std::string(other.row));
            return *std::ranges::find(grammar_.rows, other.row, &OptionRow::name);
        }
        if (meant.empty()) return no_such_option(spelling);
        return usage_error(spelling + ": no such option; did you mean --" + std::string(meant) +
                           "?");
    }

    // One dash: -r3, -r 3, -r=3, -m, or several letters as in -mr3.
    std::optional<Error> read_letters(const std::string& word) {
        for (std::size_t i = 1; i < word.size(); ++i) {
            std::string spelling = std::string("-") + word[i];
            const OptionRow* row = find_letter(word[i]);
            if (!row) return unknown_letters(word);
            std::optional<std::string> value;
            // The rest of the word is the value if the option takes one. "-m=x" is glued as well,
            // so that take() can refuse it with a clear sentence.
            bool glued = i + 1 < word.size() && (takes_value(*row) || word[i + 1] == '=');
            if (glued) value = word.substr(word[i + 1] == '=' ? i + 2 : i + 1);
            if (auto error = take(*row, spelling, std::move(value))) return error;
            if (takes_value(*row)) break;
        }
        return std::nullopt;
    }

    // Other launchers write long names with one dash: -np 4, -nnodes=2. The refusal names our
    // spelling.
    Error unknown_letters(const std::string& word) const {
        std::string name = word.substr(1, word.find('=') - 1);
        for (char& c : name) c = c == '_' ? '-' : c;
        std::string_view meant;
        for (const OptionRow* row : grammar_.rows)
            if (row->name == name) meant = row->name;
        for (const OtherName& other : grammar_.other_names)
            if (other.name == name) meant = other.row;
        if (meant.empty()) return no_such_option(word);
        return usage_error(word + ": no such option; did you mean --" + std::string(meant) + "?");
    }

    // Linear searches do: a command line is read once.
    const OptionRow* find_letter(char letter) const {
        for (const OptionRow* row : grammar_.rows)
            if (row->letter != 0 && row->letter == letter) return row;
        return nullptr;
    }

    Error no_such_option(const std::string& word) const {
        return usage_error(word + kNoSuchOption + std::string(grammar_.advice));
    }

    // Records one option. Its value is glued to it, or implied, or the next word. A next word that
    // looks like an option is not taken for the value: the user has most likely forgotten the
    // value.
    std::optional<Error> take(const OptionRow& row, const std::string& spelling,
                              std::optional<std::string> value) {
        // `--flag=value` is refused: argparse does so, too.
        if (!takes_value(row)) {
            if (value)
                return usage_error(spelling + "=" + *value + ": takes no value; write " + spelling +
                                   " alone");
            value = "1";
            // --dry-run and --check: the next word is never their value, it may be the program.
        } else if (!value && !row.implied.empty()) {
            value = row.implied;
        } else if (!value) {
            if (at_ == words_.size() || looks_like_option(words_[at_]))
                return usage_error(
                    spelling + ": its value is missing" +
                    (at_ == words_.size() ? "" : " (" + words_[at_] + " is an option)") +
                    "; write " + spelling + "=" + std::string(row.placeholder));
            value = words_[at_++];
        }
        result_.options.push_back({&row, spelling, std::move(*value)});
        return std::nullopt;
    }

    const std::vector<std::string>& words_;
    const Grammar& grammar_;
    std::size_t at_ = 0;
    SplitWords result_;
};

}  // namespace

bool only_prints(const OptionRow& row) {
    return row.name == "help" || row.name == "help-all" || row.name == "version" ||
           row.name == "print-man" || row.name == "print-completion";
}

Result<SplitWords> split_words(const std::vector<std::string>& words, const Grammar& grammar) {
    return Splitter(words, grammar).run();
}

MaybeError check_choice(const OptionRow& row, std::string_view value) {
    std::vector<std::string_view> words;
    for (std::size_t at = 0; at < row.choices.size();) {
        const std::size_t end = std::min(row.choices.find(' ', at), row.choices.size());
        words.push_back(row.choices.substr(at, end - at));
        at = end + 1;
    }
    if (std::ranges::find(words, value) != words.end()) return std::nullopt;
    const std::string_view meant = nearest(value, words);
    if (!meant.empty()) return usage_error("not known; did you mean " + std::string(meant) + "?");
    std::string list;
    for (std::size_t i = 0; i < words.size(); ++i)
        list += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + std::string(words[i]);
    return usage_error("not known; give " + list);
}

}  // namespace ddprun::launcher
