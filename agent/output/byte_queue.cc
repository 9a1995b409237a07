// Stores waiting bytes in chunks, and drops whole lines from the front.
#include "agent/output/byte_queue.h"

#include <utility>

namespace ddprun::agent {
namespace {

// Small pieces are collected in chunks of up to this size, so that one write() takes many lines.
constexpr std::size_t kChunk = std::size_t{64} << 10;

}  // namespace

void ByteQueue::append(std::string bytes) {
    // The rest of a line whose beginning was dropped. Without its beginning it would look like a
    // line of its own.
    if (skipping_) {
        const std::size_t end = bytes.find('\n');
        if (end == bytes.npos) return;
        bytes.erase(0, end + 1);
        skipping_ = false;
    }
    if (bytes.empty()) return;
    size_ += bytes.size();
    if (!chunks_.empty() && chunks_.back().size() + bytes.size() <= kChunk)
        chunks_.back() += bytes;
    else
        chunks_.push_back(std::move(bytes));
}

std::string_view ByteQueue::front() const {
    return chunks_.empty() ? std::string_view() : std::string_view(chunks_.front()).substr(offset_);
}

// Remembers whether the bytes that left end inside a line: drop_oldest() must not remove the rest
// of such a line.
void ByteQueue::left(std::string_view bytes) {
    if (!bytes.empty()) mid_line_ = bytes.back() != '\n';
}

void ByteQueue::consume(std::size_t count) {
    if (count == 0) return;
    left(front().substr(0, count));
    offset_ += count;
    size_ -= count;
    if (offset_ < chunks_.front().size()) return;
    chunks_.pop_front();
    offset_ = 0;
}

std::vector<std::string> ByteQueue::take_all() {
    std::vector<std::string> all;
    if (!chunks_.empty()) chunks_.front().erase(0, std::exchange(offset_, 0));
    for (std::string& chunk : chunks_) all.push_back(std::move(chunk));
    chunks_.clear();
    size_ = 0;
    if (!all.empty()) left(all.back());
    return all;
}

// Takes the first line, with its end, out of the queue. If its end has not arrived yet, it takes
// everything.
std::string ByteQueue::take_line() {
    std::string line;
    while (size_ > 0) {
        const std::string_view bytes = front();
        const std::size_t end = bytes.find('\n');
        const std::size_t count = end == bytes.npos ? bytes.size() : end + 1;
        line += bytes.substr(0, count);
        consume(count);
        if (end != bytes.npos) break;
    }
    return line;
}

// Drops the first line. Returns false if its end has not arrived yet; append() then drops the rest
// of the line, too.
bool ByteQueue::skip_line() {
    while (size_ > 0) {
        const std::string_view bytes = front();
        const std::size_t end = bytes.find('\n');
        consume(end == bytes.npos ? bytes.size() : end + 1);
        if (end != bytes.npos) return true;
    }
    skipping_ = true;
    return false;
}

// The line that has begun to leave is put aside, older lines are dropped, and then the begun line
// goes back to the front.
std::size_t ByteQueue::drop_oldest(std::size_t most) {
    if (size_ <= most) return 0;
    std::size_t lines = 0;
    std::string begun = mid_line_ ? take_line() : std::string();
    // A line without end that has begun to leave. Keeping it would exceed the limit, so it ends
    // here.
    if (begun.size() > most) {
        skipping_ = begun.back() != '\n';
        begun = "\n";
        ++lines;
    }
    while (size_ > 0 && size_ + begun.size() > most) {
        ++lines;
        if (!skip_line()) break;
    }
    // take_line() and skip_line() have changed mid_line_. What the reader has received is still the
    // beginning of `begun`.
    mid_line_ = !begun.empty();
    if (begun.empty()) return lines;
    if (!chunks_.empty()) chunks_.front().erase(0, std::exchange(offset_, 0));
    size_ += begun.size();
    chunks_.push_front(std::move(begun));
    return lines;
}

}  // namespace ddprun::agent
