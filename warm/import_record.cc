#include "warm/import_record.h"

#include <algorithm>
#include <map>
#include <set>

namespace ddprun::agent::warm {
namespace {

std::set<std::string> set_of_imports(std::string_view record) {
    const std::vector<std::string> names = imports_in(record);
    return {names.begin(), names.end()};
}

}  // namespace

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
    std::map<std::string, int> holders;  // import -> how many more records have it
    for (const std::string& record : records)
        for (const std::string& name : set_of_imports(record)) ++holders[name];
    for (const std::string& record : than)
        for (const std::string& name : set_of_imports(record)) --holders[name];
    return std::ranges::any_of(holders, [](const auto& each) { return each.second > 0; });
}

}  // namespace ddprun::agent::warm
