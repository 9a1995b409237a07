// A buffer that goes around the ring of ranks, a part at a time: the traffic of all-reduce,
// reduce-scatter and all-gather.
//
// In each hop a part comes from the left and is added to ours, or kept as it is; in the next hop it
// goes to the right. Parts travel in pieces, each on its own way: while one waits for this thread
// to add it, others are on the link. The constructor posts the first receives and sends what this
// rank begins with; the rest is done by finish(). So a collective that was begun is on its way
// while the one before it, or the thread that carries both out, still waits for its turn.
//
// The order of additions depends on the number of ranks only. Thread: the constructor any,
// finish() and the end of the object one. The buffers stay until that end.
#pragma once

#include <vector>

#include "trainer/gloo/gloo_messages.h"
#include "trainer/group/operation.h"

namespace ddprun::trainer {

class GlooRing {
  public:
    struct Part {
        char* data = nullptr;
        std::size_t bytes = 0;
    };
    struct Hop {
        Part in;
        bool adds;
    };

    // `first` goes to the right in the first hop. `add` is for elements of `width` bytes.
    GlooRing(GlooMessages& messages, GlooMessages::Channel channel, Part first,
             const std::vector<Hop>& hops, ReduceFunction add, std::size_t width);
    GlooRing(const GlooRing&) = delete;
    GlooRing& operator=(const GlooRing&) = delete;

    void finish();

  private:
    using Pending = GlooMessages::Pending;
    struct Piece {
        Part part;
        bool adds, goes_on;  // goes_on: to the right, in the next hop
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
    std::size_t room_ = 0;  // for one piece that is to be added
    std::unique_ptr<char[]> scratch_;
    std::vector<Piece> incoming_;  // in the order in which they come
    std::vector<Pending> sent_;
};

}  // namespace ddprun::trainer
