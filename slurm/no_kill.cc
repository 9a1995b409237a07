// Looks for --no-kill in the command line of srun.
#include "slurm/no_kill.h"

#include <algorithm>
#include <string_view>

namespace ddprun::slurm {
namespace {

// The short options of srun that take a value (-I and -K may have one). The rest of such a word is
// the value, so a 'k' in it is not the option -k.
constexpr std::string_view kWithValue = "ABbcCdDeFgGIiJKLmMnNopPqrStTwWx";

constexpr std::string_view kLong = "--no-kill";
// getopt_long() accepts every unique abbreviation. This is the shortest one that no other option
// has.
constexpr std::size_t kShortest = std::string_view("--no-k").size();

// Whether a word of short options, such as -kl, contains the option -k.
bool has_letter(std::string_view word) {
    for (const char letter : word.substr(1)) {
        if (letter == 'k') return true;
        if (kWithValue.find(letter) != std::string_view::npos) return false;
    }
    return false;
}

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

bool asks_no_kill(const std::vector<std::string>& words,
                  const std::optional<std::string>& variable) {
    // As in srun: the variable counts first, then each option of the command line in order.
    bool asks = variable && *variable != "off";
    for (const std::string_view word : words) {
        const std::string_view name = word.substr(0, word.find('='));
        if (name.size() >= kShortest && kLong.starts_with(name))
            asks = word.substr(name.size()) != "=off";
        else if (word.size() > 1 && word[0] == '-' && word[1] != '-' && has_letter(word))
            asks = true;
    }
    return asks;
}

std::vector<std::string> words_of_srun(const std::vector<std::string>& srun,
                                       const std::vector<std::string>& command) {
    if (command.empty() || srun.size() <= command.size()) return {};
    const auto program = srun.end() - static_cast<std::ptrdiff_t>(command.size());
    // The command that srun starts is at the end of its words. Only the folder of the program may
    // differ, because srun looks the program up in PATH.
    if (base_name(*program) != base_name(command.front()) ||
        !std::equal(program + 1, srun.end(), command.begin() + 1))
        return {};
    return {srun.begin(), program};
}

}  // namespace ddprun::slurm
