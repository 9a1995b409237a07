// Cuts the parts of a ring into pieces, receives some of them ahead, and adds and passes them on.
#include "trainer/gloo/gloo_message_ring.h"

#include <algorithm>

namespace ddprun::trainer {
namespace {

// Bytes of a piece. Smaller pieces need more control messages of Gloo's than they gain.
constexpr std::size_t kMessagePiece = std::size_t{1} << 20;
// How many receives are posted ahead. With two ranks this covers half a gradient bucket of the
// default size (25 MiB), all that is added of it. Their memory has to stay below 32 MiB: glibc maps
// and unmaps larger memory for each call, which costs a page fault for every 4 KiB.
constexpr std::size_t kAhead = 24;

}  // namespace

// Calls `function` for each piece of the part.
template <class Function>
void GlooMessageRing::cut(const Part& part, std::size_t piece, Function function) {
    for (std::size_t at = 0; at < part.bytes; at += piece)
        function(Part{part.data + at, std::min(piece, part.bytes - at)});
}

GlooMessageRing::GlooMessageRing(GlooMessages& messages, GlooMessages::Channel channel, Part first,
                                 const std::vector<Hop>& hops, const Reduction& reduction)
    : messages_(messages), channel_(channel), reduction_(reduction) {
    // A piece must not split an element.
    const std::size_t piece = kMessagePiece / reduction.width() * reduction.width();
    std::size_t slots = 0;  // hops that add come before those that keep
    for (std::size_t hop = 0; hop < hops.size(); ++hop) {
        cut(hops[hop].in, piece, [&](Part part) {
            incoming_.push_back({part, hops[hop].does, hop + 1 < hops.size(), nullptr});
            if (hops[hop].does == Does::keep) return;
            room_ = std::max(room_, part.bytes);
            ++slots;
        });
    }
    if (room_) scratch_.reset(new char[room_ * std::min(kAhead, slots)]);
    for (std::size_t i = 0; i < kAhead; ++i) post(i);
    cut(first, piece, [&](Part part) { send(part); });
}

// Where a piece is received. A piece that will be added goes to a slot of the scratch memory. The
// slot is free: the piece that used it before (index - kAhead) has been added. A piece that is kept
// goes directly to its place in the buffer. That is safe too. This rank sent its own version of
// that part to the right earlier, and the final version has come around the ring from there, so the
// send is over.
char* GlooMessageRing::landing(std::size_t index) {
    const Piece& piece = incoming_[index];
    return piece.does == Does::keep ? piece.part.data : &scratch_[index % kAhead * room_];
}

// Posts the receive of a piece, if there is a piece with this index.
void GlooMessageRing::post(std::size_t index) {
    if (index >= incoming_.size()) return;
    const int left = (messages_.rank() + messages_.size() - 1) % messages_.size();
    incoming_[index].pending =
        messages_.receive(channel_, landing(index), incoming_[index].part.bytes, left);
}

void GlooMessageRing::send(const Part& part) {
    const int right = (messages_.rank() + 1) % messages_.size();
    sent_.push_back(messages_.send(channel_, part.data, part.bytes, right));
}

void GlooMessageRing::finish() {
    for (std::size_t i = 0; i < incoming_.size(); ++i) {
        auto& [part, does, goes_on, pending] = incoming_[i];
        messages_.wait_received(pending);
        if (does != Does::keep) reduction_.add(part, landing(i), does);
        if (goes_on) send(part);
        // Only now: the new piece may use the scratch slot of piece i.
        post(i + kAhead);
    }
    // The buffer belongs to the caller again when finish() returns, so nothing may still be on its
    // way.
    for (auto& pending : sent_) messages_.wait_sent(pending);
}

}  // namespace ddprun::trainer
