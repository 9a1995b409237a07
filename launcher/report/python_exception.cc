// A traceback is a block of indented lines, `  File "train.py", line 7, in <module>` among them, and
// then the exception's line, which is not indented.
#include "launcher/report/python_exception.h"

#include <string_view>

namespace ddprun::launcher {
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

}  // namespace

std::string python_exception(const std::vector<std::string>& lines) {
    std::string found;
    bool in_traceback = false;
    for (const std::string& line : lines) {
        if (line.starts_with("  File \"")) in_traceback = true;
        if (line.starts_with("  ")) continue;
        if (in_traceback && names_exception(line)) found = line;
        in_traceback = false;
    }
    return found;
}

}  // namespace ddprun::launcher
