#include "agent/output/last_lines.h"

#include <algorithm>
#include <utility>

namespace ddprun::agent {

// Of many lines at once only the last can stay: those from which on kCount are surely lines, being
// neither empty nor a progress bar's, with the end of the one before them.
std::string_view LastLines::that_may_stay(std::string_view bytes) {
    std::size_t end = bytes.rfind('\n'), sure = 0;
    while (end != bytes.npos && end > 0) {
        const std::size_t before = bytes.rfind('\n', end - 1);
        const std::size_t begin = before == bytes.npos ? 0 : before + 1;
        const std::string_view line = bytes.substr(begin, end - begin);
        if (!line.empty() && line.find('\r') == line.npos && ++sure == kCount)
            return before == bytes.npos ? bytes : bytes.substr(before);
        end = before;
    }
    return bytes;
}

void LastLines::take(Stream& stream, std::string_view bytes) {
    bytes = that_may_stay(bytes);
    while (!bytes.empty()) {
        const std::size_t end = bytes.find('\n');
        std::string_view part = bytes.substr(0, end);
        // What stands before a \r is overwritten on a terminal, unless the \r is the line's last
        // byte.
        if (!part.empty() && !stream.line.empty() && stream.line.back() == '\r')
            stream.line.clear();
        const std::size_t back =
            part.empty() ? part.npos : part.substr(0, part.size() - 1).rfind('\r');
        if (back != part.npos) {
            stream.line.clear();
            part.remove_prefix(back + 1);
        }
        const bool returns = !part.empty() && part.back() == '\r';
        const std::size_t room = kLongest - std::min(kLongest, stream.line.size());
        stream.line += part.substr(0, room);
        if (returns && stream.line.back() != '\r') stream.line += '\r';
        if (end == bytes.npos) return;
        finish(stream);
        bytes.remove_prefix(end + 1);
    }
}

void LastLines::finish(Stream& stream) {
    if (!stream.line.empty() && stream.line.back() == '\r') stream.line.pop_back();
    if (stream.line.empty()) return;
    if (lines_.size() == kCount) lines_.pop_front();
    lines_.push_back(std::exchange(stream.line, {}));
}

}  // namespace ddprun::agent
