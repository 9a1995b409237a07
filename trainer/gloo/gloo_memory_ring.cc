// Reads what the left neighbour has, adds it or keeps it, and says so to the right.
#include "trainer/gloo/gloo_memory_ring.h"

#include <gloo/common/error.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace ddprun::trainer {
namespace {

// Bytes that are read at a time: a piece that is added is still in the L2 cache then.
constexpr std::size_t kMemoryPiece = std::size_t{256} << 10;

int left_of(const GlooMessages& messages) {
    return (messages.rank() + messages.size() - 1) % messages.size();
}
int right_of(const GlooMessages& messages) { return (messages.rank() + 1) % messages.size(); }

}  // namespace

// With two ranks both neighbours are the same one. On a channel its messages keep their order: the
// offer, a word for each hop but the first, and the word that it has read all.
GlooMemoryRing::GlooMemoryRing(GlooMessages& messages, GlooMessages::Channel channel,
                               const PeerMemory& left, std::uint64_t mark, Part buffer,
                               std::vector<Hop> hops, const Reduction& reduction)
    : messages_(messages),
      channel_(channel),
      left_(left),
      buffer_(buffer),
      mark_(mark),
      begin_(readable()),
      hops_(std::move(hops)),
      reduction_(reduction),
      mine_{reinterpret_cast<std::uint64_t>(begin_), mark_.place()},
      words_(hops_.size()) {
    for (auto& hop : hops_) hop.in.data = begin_ + (hop.in.data - buffer_.data);
    const int from = left_of(messages_);
    offer_ = messages_.receive(channel_, &theirs_, sizeof theirs_, from);
    for (std::size_t hop = 1; hop < hops_.size(); ++hop)
        ready_.push_back(messages_.receive(channel_, &words_[hop], 1, from));
    done_ = messages_.receive(channel_, words_.data(), 1, right_of(messages_));
    sent_.push_back(messages_.send(channel_, &mine_, sizeof mine_, right_of(messages_)));
}

// This process may not read itself where others may not either. One look at each end: a buffer lies
// in one mapping, or in several of one kind.
char* GlooMemoryRing::readable() {
    const PeerMemory own(getpid());
    char byte = 0;
    for (const char* end : {buffer_.data, buffer_.data + buffer_.bytes - 1}) {
        if (!own.read(reinterpret_cast<std::uint64_t>(end), &byte, 1, mark_.place())) continue;
        copy_.reset(new char[buffer_.bytes]);
        std::memcpy(copy_.get(), buffer_.data, buffer_.bytes);
        return copy_.get();
    }
    return buffer_.data;
}

void GlooMemoryRing::send_word(int to) { sent_.push_back(messages_.send(channel_, &word_, 1, to)); }

// From the place in the neighbour's buffer that `mine` has in this one.
void GlooMemoryRing::read(char* to, const char* mine, std::size_t bytes) const {
    const auto from = theirs_.buffer + static_cast<std::uint64_t>(mine - begin_);
    const int problem = left_.read(from, to, bytes, theirs_.mark);
    if (problem)
        throw ::gloo::IoException("Connection lost: the memory of process " +
                                  std::to_string(left_.process()) +
                                  " cannot be read: " + std::strerror(problem));
}

// A part that is kept goes directly to its place. The right neighbour does not read there any more:
// what comes has gone around the ring from what it has read.
void GlooMemoryRing::take(const Hop& hop) {
    const std::size_t piece = kMemoryPiece / reduction_.width() * reduction_.width();
    for (std::size_t at = 0; at < hop.in.bytes; at += piece) {
        const Part part{hop.in.data + at, std::min(piece, hop.in.bytes - at)};
        if (hop.does == Does::keep) {
            read(part.data, part.data, part.bytes);
            continue;
        }
        if (!scratch_) scratch_.reset(new char[piece]);
        read(scratch_.get(), part.data, part.bytes);
        reduction_.add(part, scratch_.get(), hop.does);
    }
}

void GlooMemoryRing::finish() {
    messages_.wait_received(offer_);
    for (std::size_t hop = 0; hop < hops_.size(); ++hop) {
        if (hop > 0) messages_.wait_received(ready_[hop - 1]);
        take(hops_[hop]);
        if (hop + 1 < hops_.size()) send_word(right_of(messages_));
    }
    send_word(left_of(messages_));
    messages_.wait_received(done_);
    for (auto& pending : sent_) messages_.wait_sent(pending);
    if (copy_) std::memcpy(buffer_.data, copy_.get(), buffer_.bytes);
}

}  // namespace ddprun::trainer
