// Edit distance between names, and the search for the closest one.
#include "base/command_line/nearest.h"

#include <algorithm>
#include <vector>

namespace ddprun::launcher {
namespace {

// The optimal string alignment distance: insert, delete, replace, or swap two neighbours, and no
// letter is edited twice. d[i][j] is the distance of the first i letters of `a` from the first j
// letters of `b`.
std::size_t slips(std::string_view a, std::string_view b) {
    std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
    for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
    for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i)
        for (std::size_t j = 1; j <= b.size(); ++j) {
            d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1,
                                d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
        }
    return d[a.size()][b.size()];
}

}  // namespace

std::string_view nearest(std::string_view given, std::span<const std::string_view> names) {
    constexpr std::size_t kLongest = 64;  // a longer text is no typing error; also bounds the table
    if (given.size() > kLongest) return {};
    std::string_view best;
    std::size_t least = std::max<std::size_t>(1, given.size() / 3) + 1;
    for (std::string_view name : names) {
        const std::size_t count = slips(given, name);
        if (count < least || (count == least && !best.empty() && name.size() > best.size()))
            best = name, least = count;
    }
    return best;
}

}  // namespace ddprun::launcher
