#include "slurm/no_kill.h"

#include <algorithm>
#include <string_view>

namespace ddprun::slurm {
namespace {

// srun's letters that take a value, -I and -K perhaps: what follows them in a word is that value.
constexpr std::string_view kWithValue = "ABbcCdDeFgGIiJKLmMnNopPqrStTwWx";

constexpr std::string_view kLong = "--no-kill";
constexpr std::size_t kShortest = std::string_view("--no-k").size();  // that means no other option

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
    if (base_name(*program) != base_name(command.front()) ||
        !std::equal(program + 1, srun.end(), command.begin() + 1))
        return {};
    return {srun.begin(), program};
}

}  // namespace ddprun::slurm
