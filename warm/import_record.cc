#include "warm/import_record.h"

#include <algorithm>
#include <set>

namespace ddprun::agent::warm {

std::vector<std::string> imports_in(std::string_view record) {
    std::vector<std::string> found;
    for (std::size_t end; (end = record.find('\n')) != record.npos; record.remove_prefix(end + 1)) {
        const std::string_view line = record.substr(0, end);
        const std::size_t tab = line.find('\t');
        if (tab == 0 || tab == line.npos || line.find('\0') != line.npos) continue;
        found.emplace_back(line.substr(0, tab));
    }
    return found;
}

bool has_more(const std::vector<std::string>& records, const std::vector<std::string>& than) {
    std::set<std::string> known;
    for (const std::string& record : than)
        for (std::string& name : imports_in(record)) known.insert(std::move(name));
    return std::ranges::any_of(records, [&](const std::string& record) {
        return std::ranges::any_of(imports_in(record),
                                   [&](const std::string& name) { return !known.contains(name); });
    });
}

}  // namespace ddprun::agent::warm
