// Writes and reads what is known about the imports of a script.
#include "agent/warm/known_imports.h"

#include <cctype>
#include <cstdint>
#include <cstdio>
#include <utility>

namespace ddprun::agent::warm {
namespace {

constexpr std::string_view kFirst = "ddprun imports 1";
constexpr std::string_view kLeave = "leave ", kImport = "import ";
// A program has a few thousand modules.
constexpr std::size_t kMost = 100'000;
// These decide which interpreter runs and what it finds.
constexpr const char* kPaths[] = {"PATH", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV",
                                  "CONDA_PREFIX"};

// FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv/). Only names depend on it, no safety.
class Hash {
  public:
    void add(std::string_view word) {
        for (const char c : word) mix(static_cast<unsigned char>(c));
        mix(0);  // the end of a word counts
    }
    std::string text() const {
        char text[17];
        std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value_));
        return text;
    }

  private:
    void mix(unsigned char byte) { value_ = (value_ ^ byte) * 0x100000001b3ULL; }
    std::uint64_t value_ = 0xcbf29ce484222325ULL;
};

std::string plain(std::string_view name) {
    std::string text(name.substr(0, 60));
    for (char& c : text)
        if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != '-' && c != '.')
            c = '_';
    return text;
}

bool is_name(std::string_view name) {
    return !name.empty() && name.find_first_of(std::string_view("\t\n\0", 3)) == name.npos;
}

}  // namespace

std::string known_imports_text(const KnownImports& known) {
    std::string text = std::string(kFirst) + "\n";
    for (const std::string& name : known.left_out)
        if (is_name(name)) text += std::string(kLeave) + name + "\n";
    for (const Import& each : known.imports)
        if (is_name(each.name) && each.file.find('\n') == each.file.npos)
            text += std::string(kImport) + each.name + "\t" + each.file + "\n";
    return text;
}

std::optional<KnownImports> read_known_imports(std::string_view text) {
    KnownImports known;
    for (bool first = true; !text.empty(); first = false) {
        const std::size_t end = text.find('\n');
        if (end == text.npos) return std::nullopt;  // it was not written to its end
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(end + 1);
        if (first && line != kFirst) return std::nullopt;
        if (first) continue;
        if (line.find('\0') != line.npos) return std::nullopt;
        if (line.starts_with(kLeave)) {
            known.left_out.emplace_back(line.substr(kLeave.size()));
        } else if (line.starts_with(kImport)) {
            const std::string_view rest = line.substr(kImport.size());
            const std::size_t tab = rest.find('\t');
            if (tab == rest.npos || tab == 0) return std::nullopt;
            known.imports.push_back(
                {std::string(rest.substr(0, tab)), std::string(rest.substr(tab + 1))});
        } else {
            return std::nullopt;
        }
        if (known.imports.size() + known.left_out.size() > kMost) return std::nullopt;
    }
    if (known.imports.empty()) return std::nullopt;
    return known;
}

std::string imports_file_name(const PythonCommand& command, const std::string& folder,
                              const std::map<std::string, std::string>& environment) {
    const std::string& what = command.script.empty() ? command.module : command.script;
    if (what.empty()) return "";
    Hash hash;
    for (const std::string& word : command.interpreter) hash.add(word);
    hash.add(command.module.empty() ? "script" : "module");
    hash.add(what.starts_with('/') ? "" : folder);
    hash.add(what);
    for (const char* name : kPaths)
        if (const auto found = environment.find(name); found != environment.end())
            hash.add(name), hash.add(found->second);
    return plain(what.substr(what.rfind('/') == what.npos ? 0 : what.rfind('/') + 1)) + "-" +
           hash.text();
}

// XDG Base Directory Specification: a value that is no absolute path is ignored.
std::string imports_folder(const std::map<std::string, std::string>& environment) {
    for (const auto& [name, below] : {std::pair{"XDG_CACHE_HOME", ""}, {"HOME", "/.cache"}})
        if (const auto found = environment.find(name);
            found != environment.end() && found->second.starts_with('/'))
            return found->second + below + "/ddprun/imports";
    return "";
}

}  // namespace ddprun::agent::warm
