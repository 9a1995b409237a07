// Compares the names in the folders.
#include "launcher/report/torn_checkpoint.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>

namespace ddprun::launcher {
namespace {

constexpr std::string_view kName = "checkpoint", kDigits = "0123456789";
// Characters of a path as exceptions and programs print one. Others would have to be quoted for a
// shell.
constexpr std::string_view kPath =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+@";

// Length of "checkpoint-20" at the beginning of `text`; 0: it is none.
std::size_t length_of_name(std::string_view text) {
    if (!text.starts_with(kName) || text.size() < kName.size() + 2) return 0;
    if (text[kName.size()] != '-' && text[kName.size()] != '_') return 0;
    const std::size_t begin = kName.size() + 1;
    const std::size_t end = std::min(text.find_first_not_of(kDigits, begin), text.size());
    return end == begin ? 0 : end;
}

// Of "checkpoint-20"; -1: the name has another form.
std::int64_t number_of(std::string_view name) {
    constexpr std::size_t kMostDigits = 15;
    if (length_of_name(name) != name.size() || name.size() > kName.size() + 1 + kMostDigits)
        return -1;
    return std::stoll(std::string(name.substr(kName.size() + 1)));
}

// Names with N for each number: parts, ranks and steps differ between whole checkpoints, too.
std::set<std::string> kinds_of(const CheckpointFolder& folder) {
    std::set<std::string> kinds;
    for (const std::string& name : folder.files) {
        std::string kind;
        for (const char c : name)
            if (kDigits.find(c) == kDigits.npos)
                kind += c;
            else if (!kind.ends_with('N'))
                kind += 'N';
        kinds.insert(std::move(kind));
    }
    return kinds;
}

}  // namespace

std::string checkpoint_named_in(const std::vector<std::string>& lines) {
    for (auto line = lines.rbegin(); line != lines.rend(); ++line)
        for (std::size_t at = line->rfind(kName); at != line->npos && at > 0;
             at = line->rfind(kName, at - 1)) {
            const std::size_t length = length_of_name(std::string_view(*line).substr(at));
            const std::size_t before = line->find_last_not_of(kPath, at - 1);
            const std::size_t begin = before == line->npos ? 0 : before + 1;
            if (length != 0 && begin < at && (*line)[at - 1] == '/')
                return line->substr(begin, at - begin + length);
        }
    return {};
}

std::optional<std::string> torn_sentence(const std::string& path,
                                         const std::vector<CheckpointFolder>& beside) {
    const std::size_t slash = path.rfind('/');
    if (slash == path.npos) return std::nullopt;
    const std::string parent = path.substr(0, slash), name = path.substr(slash + 1);
    const auto torn = std::ranges::find(beside, name, &CheckpointFolder::name);
    if (torn == beside.end()) return std::nullopt;
    // The one with the most kinds of files; of several, the newest.
    const CheckpointFolder* whole = nullptr;
    std::set<std::string> expected;
    for (const CheckpointFolder& each : beside) {
        const std::int64_t number = number_of(each.name);
        if (number < 0 || number >= number_of(name)) continue;
        std::set<std::string> kinds = kinds_of(each);
        if (whole &&
            std::pair(kinds.size(), number) < std::pair(expected.size(), number_of(whole->name)))
            continue;
        whole = &each;
        expected = std::move(kinds);
    }
    if (!whole) return std::nullopt;
    std::vector<std::string> lacking;
    std::ranges::set_difference(expected, kinds_of(*torn), std::back_inserter(lacking));
    if (lacking.empty()) return std::nullopt;
    const std::string others =
        lacking.size() == 1 ? "" : " and " + std::to_string(lacking.size() - 1) + " more";
    const std::string older = parent + "/" + whole->name;
    return path + " is torn: it lacks " + lacking.front() + others + ", which " + older +
           " has. To resume from " + older + ": mv " + path + " " + parent + ".torn-" + name;
}

}  // namespace ddprun::launcher
