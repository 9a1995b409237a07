#include "agent/line_splitter.h"

namespace ddprun::agent {

std::string LineSplitter::take(std::string_view bytes) {
    if (prefix_.empty()) return std::string(bytes);
    std::string out;
    // A \r came last: whether it ends the line or belongs to a \r\n is only known now.
    if (!held_.empty() && held_.back() == '\r' && !bytes.empty() && bytes.front() != '\n')
        close_line(out, {});
    while (!bytes.empty()) {
        std::size_t end = bytes.find_first_of("\r\n");
        if (end != bytes.npos && bytes[end] == '\r') {
            if (end + 1 == bytes.size())
                end = bytes.npos;
            else if (bytes[end + 1] == '\n')
                ++end;
        }
        if (end == bytes.npos) {
            held_ += bytes;
            if (held_.size() >= longest_) close_line(out, "\n");
            break;
        }
        held_ += bytes.substr(0, end + 1);
        close_line(out, {});
        bytes.remove_prefix(end + 1);
    }
    return out;
}

std::string LineSplitter::finish() {
    std::string out;
    if (!held_.empty()) close_line(out, "\n");
    return out;
}

void LineSplitter::close_line(std::string& out, std::string_view end) {
    out += prefix_;
    out += held_;
    out += end;
    held_.clear();
    // A line of 10 MB must not stay in memory for the rest of the job.
    if (held_.capacity() > (std::size_t{1} << 20)) held_.shrink_to_fit();
}

}  // namespace ddprun::agent
