#include "trainer/gloo/gloo_ring.h"

#include <algorithm>

namespace ddprun::trainer {
namespace {

// Smaller ones cost more words of Gloo's than they gain.
constexpr std::size_t kPiece = std::size_t{1} << 20;
// So many receives are posted ahead: the buckets of a gradient's usual size in whole.
constexpr std::size_t kAhead = 32;

}  // namespace

template <class Function>
void GlooRing::cut(const Part& part, std::size_t piece, Function function) {
    for (std::size_t at = 0; at < part.bytes; at += piece)
        function(Part{part.data + at, std::min(piece, part.bytes - at)});
}

GlooRing::GlooRing(GlooMessages& messages, GlooMessages::Channel channel, Part first,
                   const std::vector<Hop>& hops, ReduceFunction add, std::size_t width)
    : messages_(messages), channel_(channel), add_(add), width_(width) {
    const std::size_t piece = kPiece / width * width;
    for (std::size_t hop = 0; hop < hops.size(); ++hop) {
        cut(hops[hop].in, piece, [&](Part part) {
            incoming_.push_back({part, hops[hop].adds, hop + 1 < hops.size(), nullptr});
            if (hops[hop].adds) room_ = std::max(room_, part.bytes);
        });
    }
    if (room_) scratch_.reset(new char[room_ * std::min(kAhead, incoming_.size())]);
    for (std::size_t i = 0; i < kAhead; ++i) post(i);
    cut(first, piece, [&](Part part) { send(part); });
}

// What is kept as it is lands in its place: it comes only when the rank to the right has had, and
// passed on, what this rank sent from there.
char* GlooRing::landing(std::size_t index) {
    return incoming_[index].adds ? &scratch_[index % kAhead * room_] : incoming_[index].part.data;
}

void GlooRing::post(std::size_t index) {
    if (index >= incoming_.size()) return;
    const int left = (messages_.rank() + messages_.size() - 1) % messages_.size();
    incoming_[index].pending =
        messages_.receive(channel_, landing(index), incoming_[index].part.bytes, left);
}

void GlooRing::send(const Part& part) {
    const int right = (messages_.rank() + 1) % messages_.size();
    sent_.push_back(messages_.send(channel_, part.data, part.bytes, right));
}

void GlooRing::finish() {
    for (std::size_t i = 0; i < incoming_.size(); ++i) {
        auto& [part, adds, goes_on, pending] = incoming_[i];
        messages_.wait_received(pending);
        // What came holds the ranks before us: first operand, so that the order is the ring's.
        if (adds) add_(part.data, landing(i), part.data, part.bytes / width_);
        if (goes_on) send(part);
        post(i + kAhead);
    }
    for (auto& pending : sent_) messages_.wait_sent(pending);
}

}  // namespace ddprun::trainer
