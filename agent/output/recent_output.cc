// A ring of bytes, and places in it (recent_output.h).
#include "agent/output/recent_output.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace ddprun::agent {
namespace {

constexpr std::size_t kLeastRoom = 1024;

std::uint64_t line_ends(std::string_view bytes) {
    return static_cast<std::uint64_t>(std::ranges::count(bytes, '\n'));
}

void append(std::vector<OutputPiece>& pieces, bool is_err, std::string_view text) {
    if (text.empty()) return;
    if (pieces.empty() || pieces.back().is_err != is_err) pieces.push_back({is_err, {}});
    pieces.back().text += text;
}

}  // namespace

// One copy, into memory that is there already. A worker that prints little costs little.
void RecentOutput::take(bool is_err, std::string_view bytes) {
    if (bytes.empty()) return;
    if (bytes.size() > limit()) {
        skip(is_err, bytes.substr(0, bytes.size() - limit()));
        bytes.remove_prefix(bytes.size() - limit());
    }
    make_room(bytes.size());
    put(end_, bytes);
    end_ += bytes.size();
    add(is_err);
    if (segments_.size() > kChanges) forget_until(segments_.front().end);
    if (!readers_.empty()) wake_readers();
}

void RecentOutput::put(Place at, std::string_view bytes) {
    const std::size_t begin = at % ring_.size();
    const std::size_t first = std::min(bytes.size(), ring_.size() - begin);
    std::memcpy(ring_.data() + begin, bytes.data(), first);
    std::memcpy(ring_.data(), bytes.data() + first, bytes.size() - first);
}

void RecentOutput::end() {
    has_ended_ = true;
    wake_readers();
}

void RecentOutput::wake_readers() {
    for (OutputReader* reader : readers_)
        if (std::exchange(reader->waits_, false)) reader->more_();
}

void RecentOutput::add(bool is_err) {
    if (segments_.empty() || segments_.back().is_err != is_err)
        segments_.push_back({end_, is_err});
    else
        segments_.back().end = end_;
}

// These bytes are too many to be kept.
void RecentOutput::skip(bool is_err, std::string_view bytes) {
    forget_until(end_);
    if (!readers_.empty()) lines_gone_ += line_ends(bytes);
    in_line_[is_err] = bytes.back() != '\n';
    begin_ = end_ += bytes.size();
}

void RecentOutput::make_room(std::size_t bytes) {
    const std::size_t needed = size() + bytes;
    if (needed > ring_.size() && ring_.size() < limit())
        set_room(std::min(limit(), std::max(kLeastRoom, std::bit_ceil(needed))));
    if (needed > ring_.size()) forget_until(end_ + bytes - ring_.size());
}

void RecentOutput::set_room(std::size_t bytes) {
    const std::string kept = text(begin_, end_);
    ring_ = std::string(bytes, '\0');
    put(begin_, kept);
}

void RecentOutput::forget_until(Place place) {
    if (!readers_.empty()) lines_gone_ += lines_between(begin_, place);
    while (!segments_.empty() && begin_ < place) {
        const Segment first = segments_.front();
        begin_ = std::min(first.end, place);
        in_line_[first.is_err] = ring_[(begin_ - 1) % ring_.size()] != '\n';
        if (begin_ == first.end) segments_.pop_front();
    }
}

std::string RecentOutput::text(Place from, Place to) const {
    if (from == to) return {};
    const std::size_t at = from % ring_.size(), bytes = static_cast<std::size_t>(to - from);
    const std::size_t first = std::min(bytes, ring_.size() - at);
    return ring_.substr(at, first) + ring_.substr(0, bytes - first);
}

std::uint64_t RecentOutput::lines_between(Place from, Place to) const {
    if (from == to) return 0;
    const std::string_view ring = ring_;
    const std::size_t at = from % ring.size(), bytes = static_cast<std::size_t>(to - from);
    const std::size_t first = std::min(bytes, ring.size() - at);
    return line_ends(ring.substr(at, first)) + line_ends(ring.substr(0, bytes - first));
}

std::vector<OutputPiece> RecentOutput::pieces(Place from, Place to) const {
    std::vector<OutputPiece> found;
    for (const Segment& segment : segments_) {
        const Place end = std::min(segment.end, to);
        if (end <= from) continue;
        append(found, segment.is_err, text(from, end));
        from = end;
        if (from == to) break;
    }
    return found;
}

std::vector<OutputPiece> RecentOutput::last_lines(std::size_t count) const {
    const Place from = size() > kKept ? end_ - kKept : begin_;
    // Before `from` may be more of a line, as before begin_.
    bool cut[2] = {in_line_[0] || from > begin_, in_line_[1] || from > begin_};
    std::string open[2];
    std::vector<OutputPiece> lines;
    bool newest = false;
    for (const OutputPiece& piece : pieces(from, end_)) {
        std::string& line = open[newest = piece.is_err];
        std::string_view rest = piece.text;
        for (std::size_t end; (end = rest.find('\n')) != rest.npos; rest.remove_prefix(end + 1)) {
            line += rest.substr(0, end + 1);
            if (!std::exchange(cut[piece.is_err], false)) lines.push_back({piece.is_err, line});
            line.clear();
        }
        line += rest;
    }
    for (const bool is_err : {!newest, newest})
        if (!open[is_err].empty()) lines.push_back({is_err, open[is_err]});
    std::vector<OutputPiece> last;
    for (std::size_t i = lines.size() - std::min(count, lines.size()); i < lines.size(); ++i)
        append(last, lines[i].is_err, lines[i].text);
    return last;
}

void RecentOutput::come(OutputReader* reader) { readers_.push_back(reader); }

// The last one gives back what was kept for readers.
void RecentOutput::go(OutputReader* reader) {
    std::erase(readers_, reader);
    if (!readers_.empty() || ring_.size() <= kKept) return;
    if (size() > kKept) forget_until(end_ - kKept);
    set_room(kKept);
}

RecentOutput::Lost RecentOutput::catch_up(ReadPlace& place) const {
    Lost lost;
    if (place.at >= begin_) return lost;
    lost = {begin_ - place.at, lines_gone_ - place.lines};
    place = {begin_, lines_gone_};
    if (segments_.empty() || !in_line_[segments_.front().is_err]) return lost;
    // The rest of a line whose beginning is lost.
    const std::string first = text(begin_, segments_.front().end);
    const std::size_t end = first.find('\n');
    if (end == first.npos) return lost;
    place.at += end + 1;
    ++place.lines;
    return {lost.bytes + end + 1, lost.lines + 1};
}

OutputReader::OutputReader(std::shared_ptr<RecentOutput> output, std::size_t lines,
                           std::function<void()> more)
    : output_(std::move(output)), more_(std::move(more)), first_(output_->last_lines(lines)) {
    output_->come(this);
    place_ = {output_->end_,
              output_->lines_gone_ + output_->lines_between(output_->begin_, output_->end_)};
}

OutputReader::~OutputReader() { output_->go(this); }

rendezvous::WorkerText OutputReader::take(std::size_t most) {
    rendezvous::WorkerText text;
    if (!first_.empty()) {
        text.pieces = std::exchange(first_, {});
    } else {
        const auto lost = output_->catch_up(place_);
        text.lost_bytes = static_cast<std::int64_t>(lost.bytes);
        text.lost_lines = static_cast<std::int64_t>(lost.lines);
        const auto to = std::min(output_->end_, place_.at + most);
        text.pieces = output_->pieces(place_.at, to);
        place_.lines += output_->lines_between(place_.at, to);
        place_.at = to;
    }
    text.ended = output_->has_ended_ && place_.at == output_->end_;
    waits_ = text.is_empty();
    return text;
}

}  // namespace ddprun::agent
