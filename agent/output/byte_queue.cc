#include "agent/output/byte_queue.h"

#include <utility>

namespace ddprun::agent {
namespace {

constexpr std::size_t kChunk = std::size_t{64} << 10;  // small ones are gathered up to this

}  // namespace

void ByteQueue::append(std::string bytes) {
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

// Up to the end of the line, or all.
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

// False: the line's end has not come yet.
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

std::size_t ByteQueue::drop_oldest(std::size_t most) {
    if (size_ <= most) return 0;
    std::size_t lines = 0;
    std::string begun = mid_line_ ? take_line() : std::string();
    if (begun.size() > most) {  // an endless line that has begun: it ends here
        skipping_ = begun.back() != '\n';
        begun = "\n";
        ++lines;
    }
    while (size_ > 0 && size_ + begun.size() > most) {
        ++lines;
        if (!skip_line()) break;
    }
    mid_line_ = !begun.empty();
    if (begun.empty()) return lines;
    if (!chunks_.empty()) chunks_.front().erase(0, std::exchange(offset_, 0));
    size_ += begun.size();
    chunks_.push_front(std::move(begun));
    return lines;
}

}  // namespace ddprun::agent
