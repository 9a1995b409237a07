// Numbers, notes and words of a shell (dry_run_words.h).
#include "launcher/dry_run/dry_run_words.h"

#include <chrono>

#include "base/command_line/text_parts.h"

namespace ddprun::launcher {

std::string text_of(const Known<std::string>& known) {
    if (!known.value) return "not known yet: " + known.note;
    return *known.value + (known.note.empty() ? "" : "  (" + known.note + ")");
}

std::string text_of(const Known<int>& known) {
    return text_of(Known<std::string>{
        known.value ? std::optional(std::to_string(*known.value)) : std::nullopt, known.note});
}

std::string seconds_text(Duration exact) {
    const auto time = std::chrono::duration_cast<std::chrono::milliseconds>(exact);
    const auto whole = time.count() / 1000, rest = time.count() % 1000;
    if (rest == 0) return std::to_string(whole) + " s";
    std::string fraction = std::to_string(1000 + rest).substr(1);
    while (fraction.back() == '0') fraction.pop_back();
    return std::to_string(whole) + "." + fraction + " s";
}

std::string joined(const std::vector<std::string>& words, const char* between) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
    return text;
}

std::string shell_line(const std::vector<std::string>& argv) {
    std::string text;
    for (const std::string& word : argv) text += (text.empty() ? "" : " ") + shell_word(word);
    return text;
}

}  // namespace ddprun::launcher
