// Keeps the last lines of a worker's output.
#include "agent/output/last_lines.h"

#include <algorithm>
#include <utility>

namespace ddprun::agent {

// A speed-up for large pieces: only the last most_ lines can remain. This searches from the end
// for most_ lines that certainly count: not empty, and without a \r, because a progress bar may
// erase itself. The result starts at the line end before them, so that an unfinished earlier line
// ends correctly.
std::string_view LastLines::that_may_stay(std::string_view bytes) const {
    std::size_t end = bytes.rfind('\n'), sure = 0;
    while (end != bytes.npos && end > 0) {
        const std::size_t before = bytes.rfind('\n', end - 1);
        const std::size_t begin = before == bytes.npos ? 0 : before + 1;
        const std::string_view line = bytes.substr(begin, end - begin);
        if (!line.empty() && line.find('\r') == line.npos && ++sure == most_)
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
        // On a terminal, what follows a \r overwrites the line. A \r at the end of the line
        // overwrites nothing.
        if (!part.empty() && !stream.line.empty() && stream.line.back() == '\r')
            stream.line.clear();
        // Only the text after the last \r would be visible. A \r as the last byte is skipped here:
        // more text may follow.
        const std::size_t back =
            part.empty() ? part.npos : part.substr(0, part.size() - 1).rfind('\r');
        if (back != part.npos) {
            stream.line.clear();
            part.remove_prefix(back + 1);
        }
        const bool returns = !part.empty() && part.back() == '\r';
        // A longer line is cut, but reading continues up to its end.
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
    if (lines_.size() == most_) lines_.pop_front();
    lines_.push_back(std::exchange(stream.line, {}));
}

}  // namespace ddprun::agent
