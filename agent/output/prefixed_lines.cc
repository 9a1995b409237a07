// Splits bytes into lines and adds prefixes.
#include "agent/output/prefixed_lines.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ddprun::agent {
namespace {

const char* find(const char* from, const char* to, char what) {
    return static_cast<const char*>(std::memchr(from, what, static_cast<std::size_t>(to - from)));
}

// Returns the position after the end of the line that begins at `at`, or null if its end is not
// among these bytes. `returns` is the next \r. It is kept between calls, so that text without any
// \r is searched for it only once.
const char* line_end(const char* at, const char* end, const char*& returns) {
    const char* newline = find(at, end, '\n');
    if (returns && returns < at) returns = find(at, end, '\r');
    if (!returns || (newline && newline < returns)) return newline ? newline + 1 : nullptr;
    // A \n may follow in the next piece.
    if (returns + 1 == end) return nullptr;
    return returns[1] == '\n' ? returns + 2 : returns + 1;
}

}  // namespace

std::string PrefixedLines::take(std::string_view bytes) {
    if (passes_as_is() || bytes.empty()) return std::string(bytes);
    std::string out;
    // Room for the prefixes of many short lines.
    out.reserve(bytes.size() + bytes.size() / 4);
    // The rest of a line that was too long: it passes as it is, up to its end. Only \n ends it.
    if (open_) {
        const char* const end = find(bytes.data(), bytes.data() + bytes.size(), '\n');
        if (!end) return std::string(bytes);
        out.assign(bytes.data(), end + 1);
        bytes.remove_prefix(out.size());
        open_ = false;
        if (bytes.empty()) return out;
    }
    // The last piece ended with a \r. Only now it is known whether it ended the line or was part of
    // \r\n.
    if (!held_.empty() && held_.back() == '\r' && bytes.front() != '\n') end_line(out, {});
    const char* at = bytes.data();
    const char* const end = at + bytes.size();
    const char* returns = find(at, end, '\r');
    while (const char* next = line_end(at, end, returns)) {
        end_line(out, {at, static_cast<std::size_t>(next - at)});
        at = next;
    }
    held_.append(at, end);
    count();
    return out;
}

std::string PrefixedLines::open() {
    open_ = true;
    std::string out = prefix_ + held_;
    // Releases the memory of a very long line; clear() would keep it.
    held_ = std::string();
    count();
    return out;
}

std::string PrefixedLines::cut() {
    std::string out;
    end_line(out, "\n");
    count();
    return out;
}

// Call after each change of the unfinished line.
void PrefixedLines::count() {
    budget_->used += held_.size() - counted_;
    counted_ = held_.size();
}

std::string PrefixedLines::finish() {
    if (std::exchange(open_, false)) return "\n";
    return held_.empty() ? std::string() : cut();
}

// Without needles every line passes.
bool PrefixedLines::wanted(std::string_view line) const {
    return needles_.empty() || std::ranges::any_of(needles_, [&](const std::string& needle) {
               return line.find(needle) != line.npos;
           });
}

// Completes the line: what was held, and `rest`, which ends it.
void PrefixedLines::end_line(std::string& out, std::string_view rest) {
    if (held_.empty()) {
        if (wanted(rest)) (out += prefix_) += rest;
        return;
    }
    held_ += rest;
    if (wanted(held_)) (out += prefix_) += held_;
    held_.clear();
    // A buffer that grew for one long line is released. Otherwise each worker could keep megabytes
    // for the rest of the job.
    if (held_.capacity() > (std::size_t{1} << 20)) held_.shrink_to_fit();
}

}  // namespace ddprun::agent
