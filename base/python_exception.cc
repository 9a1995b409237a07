// A traceback is a block of indented lines, `  File "train.py", line 7, in <module>` among them,
// and then the exception's line, which is not indented.
#include "base/python_exception.h"

#include <algorithm>
#include <string_view>
namespace ddprun {
namespace {

bool is_name_part(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.';
}

// "ValueError", "torch.cuda.OutOfMemoryError: CUDA out of memory": a name, and a colon if there is
// a message.
bool names_exception(std::string_view line) {
    std::size_t length = 0;
    while (length < line.size() && is_name_part(line[length])) ++length;
    if (length == 0 || line[0] == '.' || (line[0] >= '0' && line[0] <= '9')) return false;
    return length == line.size() || line.substr(length).starts_with(": ");
}

// PyTorch puts "[rank3]: " before each line of a traceback.
std::string_view without_rank(std::string_view line) {
    if (!line.starts_with("[rank")) return line;
    const std::size_t digits = line.find_first_not_of("0123456789", 5);
    if (digits == 5 || digits == line.npos || !line.substr(digits).starts_with("]:")) return line;
    line.remove_prefix(digits + 2);
    if (line.starts_with(" ")) line.remove_prefix(1);
    return line;
}

}  // namespace

std::string python_exception(const std::vector<std::string>& lines) {
    std::string found;
    bool in_traceback = false;
    for (const std::string& printed : lines) {
        const std::string_view line = without_rank(printed);
        if (line.starts_with("  File \"")) in_traceback = true;
        if (line.starts_with("  ")) continue;
        if (in_traceback && names_exception(line)) found = line;
        in_traceback = false;
    }
    return found;
}

bool ended_in_debugger(const std::string& error, const std::vector<std::string>& lines) {
    constexpr std::string_view kQuit = "bdb.BdbQuit";
    constexpr std::size_t kLast = 3;
    if (!error.empty()) return error == kQuit || error == "BdbQuit";
    const auto from = lines.end() - static_cast<std::ptrdiff_t>(std::min(lines.size(), kLast));
    return std::any_of(from, lines.end(),
                       [&](const std::string& line) { return without_rank(line) == kQuit; });
}

}  // namespace ddprun
