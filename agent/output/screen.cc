// Decides what a terminal gets from several writers.
#include "agent/output/screen.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace ddprun::agent {
namespace {

constexpr std::string_view kPlain = "\x1b[0m";

// Returns the length of the escape sequence that `text` begins with, 0 if its end is missing.
std::size_t escape_length(std::string_view text) {
    if (text.size() < 2) return 0;
    const bool is_string = text[1] == ']' || text[1] == 'P' || text[1] == '_' || text[1] == '^';
    if (is_string) {  // up to BEL or ESC backslash
        const std::size_t bell = text.find('\a', 2), end = text.find("\x1b\\", 2);
        if (bell == text.npos && end == text.npos) return 0;
        return std::min(bell == text.npos ? bell : bell + 1, end == text.npos ? end : end + 2);
    }
    if (text[1] != '[') return text[1] >= 0x20 && text[1] <= 0x2f ? (text.size() < 3 ? 0 : 3) : 2;
    for (std::size_t i = 2; i < text.size(); ++i)
        if (text[i] >= 0x40 && text[i] <= 0x7e)
            return i + 1;
        else if (static_cast<unsigned char>(text[i]) < 0x20)
            return i;  // broken off
    return 0;
}

// A sequence that is longer than this is taken for text.
constexpr std::size_t kLongestEscape = 4096;

// What a sequence does to the row.
enum class Effect { keeps, clears, leaves };
Effect effect_of(std::string_view escape) {
    if (escape[1] == ']') return Effect::keeps;  // a title, a link
    if (escape[1] != '[') return Effect::leaves;
    const char what = escape.back();
    if (what == 'K') return escape == "\x1b[2K" ? Effect::clears : Effect::keeps;
    return std::string_view("mCDP@").find(what) != std::string_view::npos ? Effect::keeps
                                                                          : Effect::leaves;
}

// How many cells of a terminal a row takes. Wide characters count as one: the row may then be
// erased in part only.
std::size_t width_of(std::string_view row) {
    std::size_t width = 0;
    for (std::size_t at = 0; at < row.size();) {
        const auto c = static_cast<unsigned char>(row[at]);
        if (c == 0x1b) {
            at += std::max<std::size_t>(escape_length(row.substr(at)), 1);
            continue;
        }
        if (c == '\t')
            width = (width / 8 + 1) * 8;
        else if (c >= 0x20 && (c & 0xc0) != 0x80)  // not a later byte of a UTF-8 character
            ++width;
        ++at;
    }
    return width;
}

}  // namespace

Screen::Stream& Screen::stream(const void* who, std::string_view prefix) {
    const auto at = std::ranges::find(streams_, who, &Stream::who);
    if (at != streams_.end()) return *at;
    Stream made;
    made.who = who;
    made.prefix = prefix;
    return streams_.emplace_back(std::move(made));
}

Screen::Stream* Screen::owner() {
    const auto at = std::ranges::find(streams_, owner_, &Stream::who);
    return at == streams_.end() ? nullptr : &*at;
}

void Screen::forget(const void* who) {
    if (owner_ == who) owner_ = nullptr;
    std::erase_if(streams_, [who](const Stream& one) { return one.who == who; });
}

// Ends a colour, then clears the rows that the text takes.
std::string Screen::erase(const Stream& shown) const {
    const std::size_t width = width_of(shown.row);
    const std::size_t more = columns_ == 0 || width == 0 ? 0 : (width - 1) / columns_;
    if (more == 0) return std::string(kPlain) + "\r\x1b[2K";
    return std::string(kPlain) + "\r\x1b[" + std::to_string(more) + "A\x1b[J";
}

std::string Screen::above(std::string_view lines) {
    Stream* const below = owner();
    if (below == nullptr || below->row.empty() || lines.empty()) return std::string(lines);
    if (below->is_cut) {  // goes on in a row of its own
        forget(owner_);
        return std::string(kPlain) + "\n" + std::string(lines);
    }
    std::string out = erase(*below);
    (out += lines) += below->row;
    if (below->returned) out += '\r';
    return out;
}

// The one that has waited longest.
std::string Screen::give_row() {
    if (owner_ != nullptr) return {};
    const auto next =
        std::ranges::find_if(streams_, [](const Stream& s) { return !s.row.empty(); });
    if (next == streams_.end()) return {};
    owner_ = next->who;
    return next->row + (next->returned ? "\r" : "");
}

std::string Screen::insert(std::string_view lines) { return ended(above(lines)); }

std::string Screen::finish(const void* who) {
    const auto at = std::ranges::find(streams_, who, &Stream::who);
    if (at == streams_.end()) return {};
    const Stream ended = *at;
    const bool had_row = owner_ == who;
    forget(who);
    if (ended.row.empty()) return give_row();
    const bool coloured = ended.row.find('\x1b') != std::string::npos;
    const std::string end = std::string(coloured ? kPlain : "") + "\n";
    if (!had_row) return above(ended.row + end);
    std::string next = give_row();
    if (!ended.prefix.empty() || !next.empty()) return end + next;
    is_open_ = true;
    return {};
}

void Screen::typed(const void* who) {
    Stream* const prompt = owner();
    if (prompt == nullptr || owner_ != who || prompt->is_bar || prompt->returned) return;
    prompt->row.clear();
    prompt->is_cut = false;
}

// The row of a stream that has ended without \n is ended before others write.
std::string Screen::ended(std::string bytes) {
    if (!bytes.empty() && std::exchange(is_open_, false)) bytes.insert(bytes.begin(), '\n');
    return bytes;
}

std::string Screen::print(const void* who, std::string_view prefix, std::string_view new_bytes) {
    Stream& s = stream(who, prefix);
    std::string bytes = std::exchange(s.escape, {});
    bytes += new_bytes;
    const bool labelled = !s.prefix.empty();
    const bool had_row = owner_ == who || owner_ == nullptr;
    std::string raw;    // for the owner: what passes
    std::string lines;  // for the others: what is complete
    const auto begin_row = [&] {
        if (s.returned) s.is_bar = true, s.row.clear(), s.returned = s.is_cut = false;
        if (!s.row.empty() || !labelled) return;
        s.row = s.prefix;
        raw += s.prefix;
    };
    const auto add = [&](std::string_view text) {
        begin_row();
        raw += text;
        if (s.row.size() + text.size() <= kLongest) {
            s.row += text;
        } else if (had_row) {
            s.is_cut = true;
        } else {  // not shown yet: what has come is shown as a line
            ((lines += s.row) += text) += '\n';
            s.row.clear();
        }
    };
    for (std::size_t at = 0; at < bytes.size();) {
        const std::string_view left = std::string_view(bytes).substr(at);
        std::size_t length = 1;
        if (left[0] == '\n') {
            if (!labelled || !s.returned) begin_row();
            const bool colours = labelled && s.row.find('\x1b') != std::string::npos;
            if (colours) raw += kPlain;
            raw += '\n';
            lines += s.row;
            if (colours) lines += kPlain;
            lines += '\n';
            s.row.clear();
            s.returned = s.is_bar = s.is_cut = false;
        } else if (left[0] == '\r') {
            s.returned = true;
            raw += '\r';
        } else if (left[0] == '\x1b' && labelled) {
            length = escape_length(left);
            if (length == 0 && left.size() < kLongestEscape) {
                s.escape = left;
                break;
            }
            length = std::max<std::size_t>(length, 1);
            const std::string_view escape = left.substr(0, length);
            const Effect effect = length < 2 ? Effect::keeps : effect_of(escape);
            if (effect == Effect::keeps) add(escape);
            if (effect == Effect::clears) {
                raw += "\r\x1b[2K";
                s.returned = true;
            }
        } else {
            length = std::min(left.find_first_of(labelled ? "\n\r\x1b" : "\n\r"), left.size());
            add(left.substr(0, length));
        }
        at += length;
    }
    // `s` may move below.
    const bool unfinished = !s.row.empty(), bar = s.is_bar || s.returned;
    const bool over = !unfinished && s.escape.empty();
    const std::string row = s.row;
    if (had_row) {
        owner_ = unfinished ? who : nullptr;
        if (over) forget(who);
        return ended(raw + give_row());
    }
    std::string out = above(lines);
    const Stream* const now = owner();
    if (now == nullptr) {
        out += give_row();
    } else if (unfinished && !bar && (now->is_bar || now->returned)) {
        out += erase(*now);
        out += row;
        owner_ = who;
    }
    if (over) forget(who);
    return ended(std::move(out));
}

}  // namespace ddprun::agent
