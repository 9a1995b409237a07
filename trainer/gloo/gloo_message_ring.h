// GlooMessageRing: a ring whose parts travel in messages, in pieces: while this thread adds one
// piece, others are on the network.
//
// The constructor posts the first receives and sends the part that this rank begins with.
#pragma once

#include <memory>
#include <vector>

#include "trainer/gloo/gloo_messages.h"
#include "trainer/gloo/gloo_ring.h"

namespace ddprun::trainer {

class GlooMessageRing final : public GlooRing {
  public:
    // `first` goes to the right neighbour in the first hop.
    GlooMessageRing(GlooMessages& messages, GlooMessages::Channel channel, Part first,
                    const std::vector<Hop>& hops, const Reduction& reduction);

    void finish() override;

  private:
    using Pending = GlooMessages::Pending;
    struct Piece {
        Part part;
        Does does;
        bool goes_on;  // is sent to the right in the next hop
        Pending pending;
    };

    template <class Function>
    static void cut(const Part& part, std::size_t piece, Function function);
    char* landing(std::size_t index);
    void post(std::size_t index);
    void send(const Part& part);

    GlooMessages& messages_;
    const GlooMessages::Channel channel_;
    const Reduction reduction_;
    std::size_t room_ = 0;  // bytes of the largest piece that is added
    // Pieces that wait to be added: slots of room_ bytes, at most kAhead, used in turn.
    std::unique_ptr<char[]> scratch_;
    std::vector<Piece> incoming_;  // in the order in which they arrive
    std::vector<Pending> sent_;
};

}  // namespace ddprun::trainer
