// A list of the lines that are held, in the order in which they will be printed.
#include "agent/output/collapsed_lines.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <utility>

namespace ddprun::agent {
namespace {

constexpr std::string_view kAnyTag = "[rank*]: ";
// A long line is compared with few others.
constexpr int kMostCompared = 16, kMostPassed = 64;

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// Whether two lines are the same but for their numbers: what ranks print of themselves.
bool are_alike(std::string_view a, std::string_view b) {
    std::size_t i = 0, j = 0;
    while (i < a.size() && j < b.size()) {
        if (is_digit(a[i]) && is_digit(b[j])) {
            while (i < a.size() && is_digit(a[i])) ++i;
            while (j < b.size() && is_digit(b[j])) ++j;
        } else if (a[i++] != b[j++]) {
            return false;
        }
    }
    return i == a.size() && j == b.size();
}

}  // namespace

CollapsedLines::CollapsedLines(std::vector<int> ranks, Label label)
    : label_(std::move(label)),
      words_((ranks.size() + 63) / 64),
      buckets_(2 * kMostLines, kNone),
      last_(ranks.size(), kNone),
      several_(words_) {
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        tags_.push_back("[rank" + std::to_string(ranks[i]) + "]: ");
        labels_.push_back(label_({i}));
    }
}

void CollapsedLines::take(std::size_t index, std::string_view line, Time now) {
    Held& wanted = candidate_;
    wanted.is_tagged = line.starts_with(tags_[index]);
    wanted.is_alone = line.starts_with(kAnyTag);
    if (wanted.is_tagged) line.remove_prefix(tags_[index].size());
    wanted.text = line;
    wanted.hash = std::hash<std::string_view>{}(line) + (wanted.is_tagged ? 1 : 0);
    Slot slot = wanted.is_alone ? kNone : find(index, wanted);
    if (slot == kNone) slot = insert(place(last_[index], wanted), now);
    join(slot, index);
    while (lines_ > kMostLines || bytes_ > kMostBytes) print_first();
}

// The first line after the rank's last one that is equal. Mostly it is the next.
CollapsedLines::Slot CollapsedLines::find(std::size_t index, const Held& wanted) const {
    const auto is_equal = [&](const Held& one) {
        return one.hash == wanted.hash && one.is_tagged == wanted.is_tagged && !one.is_alone &&
               one.text == wanted.text;
    };
    const Slot last = last_[index], next = last == kNone ? head_ : at(last).after;
    if (next == kNone || is_equal(at(next))) return next;
    const std::uint64_t from = at(next).order;
    Slot found = kNone;
    int left = kMostCompared;
    for (Slot slot = buckets_[wanted.hash % buckets_.size()]; slot != kNone && left > 0;
         slot = at(slot).older, --left)
        if (at(slot).order > from && is_equal(at(slot)) &&
            (found == kNone || at(slot).order < at(found).order))
            found = slot;
    return found;
}

// After which line a new one belongs: after the rank's last one, and after those in which other
// ranks print the same of themselves. If no line of the rank is held, and the first line is another
// one, the new line comes last.
CollapsedLines::Slot CollapsedLines::place(Slot last, const Held& line) const {
    const auto is_sibling = [&](Slot slot) {
        return slot != kNone && at(slot).count == 1 && are_alike(at(slot).text, line.text);
    };
    Slot next = last == kNone ? head_ : at(last).after;
    if (last == kNone && !is_sibling(next)) return tail_;
    for (int left = kMostPassed; left > 0 && is_sibling(next); --left)
        last = std::exchange(next, at(next).after);
    return last;
}

// Makes a line out of candidate_, without ranks, after the line `before` (kNone: as the first).
CollapsedLines::Slot CollapsedLines::insert(Slot before, Time now) {
    if (free_.empty()) {
        free_.push_back(static_cast<Slot>(held_.size()));
        held_.emplace_back();
        bits_.resize(held_.size() * words_);
    }
    const Slot slot = free_.back(), after = before == kNone ? head_ : at(before).after;
    free_.pop_back();
    Held& line = at(slot);
    line.text.assign(candidate_.text);
    line.is_tagged = candidate_.is_tagged;
    line.is_alone = candidate_.is_alone;
    line.hash = candidate_.hash;
    line.count = 0;
    std::fill_n(ranks_of(slot), words_, 0);
    line.until = after == kNone ? now + kWindow : std::min(now + kWindow, at(after).until);
    line.before = before;
    line.after = after;
    (before == kNone ? head_ : at(before).after) = slot;
    (after == kNone ? tail_ : at(after).before) = slot;
    const std::uint64_t low = before == kNone ? 0 : at(before).order;
    const std::uint64_t high = after == kNone ? low + 2 * kGap : at(after).order;
    line.order = low + (high - low) / 2;
    line.newer = kNone;
    line.older = std::exchange(bucket(line.hash), slot);
    if (line.older != kNone) at(line.older).newer = slot;
    ++lines_;
    bytes_ += line.text.size();
    if (line.order == low || high < low) number_anew();
    return slot;
}

void CollapsedLines::number_anew() {
    std::uint64_t order = 0;
    for (Slot slot = head_; slot != kNone; slot = at(slot).after) at(slot).order = order += kGap;
}

void CollapsedLines::join(Slot slot, std::size_t index) {
    ranks_of(slot)[index / 64] |= std::uint64_t{1} << (index % 64);
    ++at(slot).count;
    last_[index] = slot;
}

// The rank of a line that one rank has printed.
std::size_t CollapsedLines::rank_of(Slot slot) const {
    const std::uint64_t* word = &bits_[static_cast<std::size_t>(slot) * words_];
    std::size_t index = 0;
    for (; *word == 0; ++word) index += 64;
    return index + static_cast<std::size_t>(std::countr_zero(*word));
}

// The lines of a traceback have the same ranks, so the last label is kept.
const std::string& CollapsedLines::label_of_several(Slot slot) {
    const std::uint64_t* const bits = ranks_of(slot);
    if (several_label_.empty() || !std::equal(several_.begin(), several_.end(), bits)) {
        several_.assign(bits, bits + words_);
        std::vector<std::size_t> indexes;
        for (std::size_t i = 0; i < labels_.size(); ++i)
            if (has(slot, i)) indexes.push_back(i);
        several_label_ = label_(indexes);
    }
    return several_label_;
}

void CollapsedLines::print_first() {
    const Held& line = at(head_);
    if (line.count > 1) {
        ready_ += label_of_several(head_);
        if (line.is_tagged) ready_ += kAnyTag;
    } else {
        const std::size_t index = rank_of(head_);
        ready_ += labels_[index];
        if (line.is_tagged) ready_ += tags_[index];
    }
    (ready_ += line.text) += '\n';
    drop_first();
}

void CollapsedLines::drop_first() {
    const Slot slot = head_;
    Held& line = at(slot);
    if (line.count == 1) {
        Slot& last = last_[rank_of(slot)];
        if (last == slot) last = kNone;
    } else {
        for (std::size_t i = 0; i < last_.size(); ++i)
            if (last_[i] == slot) last_[i] = kNone;
    }
    head_ = line.after;
    (head_ == kNone ? tail_ : at(head_).before) = kNone;
    if (line.newer != kNone) at(line.newer).older = line.older;
    if (line.older != kNone) at(line.older).newer = line.newer;
    if (Slot& newest = bucket(line.hash); newest == slot) newest = line.older;
    --lines_;
    bytes_ -= line.text.size();
    // A buffer that grew for one long line is released.
    if (line.text.capacity() > (std::size_t{4} << 10)) line.text = std::string();
    free_.push_back(slot);
}

void CollapsedLines::release(std::size_t index) {
    while (last_[index] != kNone) print_first();
}

void CollapsedLines::release_all() {
    while (head_ != kNone) print_first();
}

// A line that all ranks have printed waits for nobody.
std::string CollapsedLines::ready(Time now) {
    while (head_ != kNone && (at(head_).until <= now || at(head_).count == last_.size()))
        print_first();
    return std::exchange(ready_, {});
}

Time CollapsedLines::next() const { return head_ == kNone ? kNever : at(head_).until; }

}  // namespace ddprun::agent
