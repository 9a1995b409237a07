// GlooRing: a buffer that goes around the ring of ranks, one part at a time. All-reduce,
// reduce-scatter and all-gather consist of such traffic (ring algorithms as in Patarasuk and Yuan,
// 2009).
//
// In each hop a rank receives a part from its left neighbour (rank - 1) and adds it to its own
// part, or keeps it as it is. In the next hop it sends that part to its right neighbour. Parts
// travel in pieces: while this thread adds one piece, others are on the network.
//
// The constructor posts the first receives and sends the part that this rank begins with. finish()
// does the rest. So a collective that was begun is already moving while the thread that will finish
// it is still busy with the one before.
//
// The order of the additions depends only on the number of ranks. Threads: the constructor in any
// thread; finish() and the destructor in one. The buffers must stay until the destructor.
#pragma once

#include <vector>

#include "trainer/gloo/gloo_messages.h"
#include "trainer/group/operation.h"

namespace ddprun::trainer {

class GlooRing {
  public:
    // A range of bytes in the buffer, a whole number of elements.
    struct Part {
        char* data = nullptr;
        std::size_t bytes = 0;
    };
    // What happens in one hop: the part that comes, and whether it is added or kept.
    struct Hop {
        Part in;
        bool adds;
    };

    // `first` goes to the right neighbour in the first hop. `add` works on elements of `width`
    // bytes; it is null if no hop adds.
    GlooRing(GlooMessages& messages, GlooMessages::Channel channel, Part first,
             const std::vector<Hop>& hops, ReduceFunction add, std::size_t width);
    GlooRing(const GlooRing&) = delete;
    GlooRing& operator=(const GlooRing&) = delete;

    // Carries out all hops and waits for them. Errors are exceptions, see gloo_messages.h.
    void finish();

  private:
    using Pending = GlooMessages::Pending;
    struct Piece {
        Part part;
        bool adds, goes_on;  // goes_on: is sent to the right in the next hop
        Pending pending;
    };

    template <class Function>
    static void cut(const Part& part, std::size_t piece, Function function);
    char* landing(std::size_t index);
    void post(std::size_t index);
    void send(const Part& part);

    GlooMessages& messages_;
    const GlooMessages::Channel channel_;
    const ReduceFunction add_;
    const std::size_t width_;
    std::size_t room_ = 0;  // bytes of the largest piece that is added
    // Pieces that wait to be added: kAhead slots of room_ bytes, used in turn.
    std::unique_ptr<char[]> scratch_;
    std::vector<Piece> incoming_;  // in the order in which they arrive
    std::vector<Pending> sent_;
};

}  // namespace ddprun::trainer
