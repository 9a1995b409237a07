// Splits what ranks print into lines, and passes what is no line.
#include "agent/output/collapsed_output.h"

#include <algorithm>
#include <utility>

namespace ddprun::agent {
namespace {

constexpr std::string_view kColourEnds = "\x1b[0m";

// Returns the position after a colour (ESC [ … m), 0 if it is another sequence.
std::size_t after_colour(std::string_view line, std::size_t at) {
    if (!line.substr(at).starts_with("\x1b[")) return 0;
    const std::size_t end = line.find_first_not_of("0123456789;:", at + 2);
    return end != line.npos && line[end] == 'm' ? end + 1 : 0;
}

// Whether a line only has text, tabs and colours.
bool is_text(std::string_view line) {
    for (std::size_t at = 0; at < line.size();) {
        const auto c = static_cast<unsigned char>(line[at]);
        if (c >= 0x20 || c == '\t')
            ++at;
        else if ((at = after_colour(line, at)) == 0)
            return false;
    }
    return true;
}

}  // namespace

CollapsedOutput::Stream& CollapsedOutput::stream(const void* who, std::size_t index,
                                                 std::string_view prefix) {
    const auto at = std::ranges::find(streams_, who, &Stream::who);
    if (at != streams_.end()) return *at;
    Stream made;
    made.who = who;
    made.index = index;
    made.prefix = prefix;
    return streams_.emplace_back(std::move(made));
}

void CollapsedOutput::add_ready(Time now, Pieces& out) {
    if (std::string lines = lines_.ready(now); !lines.empty())
        out.push_back({nullptr, {}, std::move(lines)});
}

// What is held of the rank comes first.
void CollapsedOutput::pass(Stream& s, std::string_view bytes, Time now, Pieces& out) {
    lines_.release(s.index);
    add_ready(now, out);
    out.push_back({s.who, s.prefix, std::string(bytes)});
}

// A whole line without its \n. What begins it may be in `unfinished`.
void CollapsedOutput::end_line(Stream& s, std::string_view rest, Time now, Pieces& out) {
    std::string line = std::exchange(s.unfinished, {});
    s.since = kNever;
    line += rest;
    if (std::exchange(s.passes, false)) return pass(s, line + "\n", now, out);
    std::string_view text = line;
    if (text.ends_with('\r')) text.remove_suffix(1);
    if (text.size() > kLongest || !is_text(text)) return pass(s, line + "\n", now, out);
    if (text.find('\x1b') == text.npos) return lines_.take(s.index, text, now);
    lines_.take(s.index, std::string(text) + std::string(kColourEnds), now);
}

CollapsedOutput::Pieces CollapsedOutput::print(const void* who, std::size_t index,
                                               std::string_view prefix, std::string_view bytes,
                                               Time now) {
    Pieces out;
    Stream& s = stream(who, index, prefix);
    for (std::size_t end; (end = bytes.find('\n')) != bytes.npos; bytes.remove_prefix(end + 1))
        end_line(s, bytes.substr(0, end), now, out);
    if (!bytes.empty()) {
        if (s.unfinished.empty()) s.since = now;
        s.unfinished += bytes;
        // A \r at the end may be followed by its \n.
        s.passes |=
            s.unfinished.size() > kLongest ||
            !is_text(std::string_view(s.unfinished)
                         .substr(0, s.unfinished.size() - (s.unfinished.ends_with('\r') ? 1 : 0)));
        if (s.passes) {
            s.since = kNever;
            pass(s, std::exchange(s.unfinished, {}), now, out);
        }
    }
    if (!s.passes && s.unfinished.empty())
        std::erase_if(streams_, [who](const Stream& one) { return one.who == who; });
    add_ready(now, out);
    return out;
}

CollapsedOutput::Pieces CollapsedOutput::finish(const void* who, Time now) {
    Pieces out;
    const auto at = std::ranges::find(streams_, who, &Stream::who);
    if (at == streams_.end()) return out;
    // The end of a line that is shown is the terminal's work.
    if (at->passes && !at->unfinished.empty())
        pass(*at, at->unfinished, now, out);
    else if (!at->passes)
        end_line(*at, {}, now, out);
    streams_.erase(at);
    return out;
}

CollapsedOutput::Pieces CollapsedOutput::ready(Time now) {
    Pieces out;
    for (Stream& s : streams_) {
        if (s.since == kNever || now - s.since < CollapsedLines::kWindow) continue;
        s.passes = true;
        s.since = kNever;
        pass(s, std::exchange(s.unfinished, {}), now, out);
    }
    add_ready(now, out);
    return out;
}

CollapsedOutput::Pieces CollapsedOutput::all(Time now) {
    Pieces out;
    lines_.release_all();
    add_ready(now, out);
    return out;
}

Time CollapsedOutput::next() const {
    Time first = lines_.next();
    for (const Stream& s : streams_)
        if (s.since != kNever) first = std::min(first, s.since + CollapsedLines::kWindow);
    return first;
}

}  // namespace ddprun::agent
