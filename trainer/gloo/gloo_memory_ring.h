// GlooMemoryRing: a ring whose ranks share a host. Each reads the parts where they lie in its left
// neighbour's memory (peer_memory.h): one copy, where a socket needs two and the kernel's work for
// each packet. Only words travel in messages, so what ends the waits of other calls (time-outs, a
// lost rank, abort()) ends these.
//
// The constructor tells the right neighbour where this rank's buffer is. A word follows for each
// further hop: the part of the hop before is ready. When a rank has read all, it tells its left
// neighbour, which keeps its buffer as it is until then.
//
// Some memory cannot be read from outside, such as what a driver has mapped (pinned memory of a
// GPU's). The ring then works on a copy, and finish() copies it back.
#pragma once

#include <memory>
#include <vector>

#include "trainer/gloo/gloo_messages.h"
#include "trainer/gloo/gloo_ring.h"
#include "trainer/gloo/peer_memory.h"

namespace ddprun::trainer {

class GlooMemoryRing final : public GlooRing {
  public:
    // `buffer` is what the hops' parts are cut from, at the same distances on all ranks. `mark`:
    // see MemoryMark.
    GlooMemoryRing(GlooMessages& messages, GlooMessages::Channel channel, const PeerMemory& left,
                   std::uint64_t mark, Part buffer, std::vector<Hop> hops,
                   const Reduction& reduction);

    void finish() override;

  private:
    using Pending = GlooMessages::Pending;
    // Where a rank's buffer is in its memory.
    struct Offer {
        std::uint64_t buffer = 0;
        MemoryMark::Place mark;
    };

    char* readable();
    void take(const Hop& hop);
    void read(char* to, const char* mine, std::size_t bytes) const;
    void send_word(int to);

    GlooMessages& messages_;
    const GlooMessages::Channel channel_;
    const PeerMemory left_;
    const Part buffer_;
    const MemoryMark mark_;
    std::unique_ptr<char[]> copy_;  // null: the buffer itself can be read
    char* const begin_;             // where others read
    std::vector<Hop> hops_;
    const Reduction reduction_;
    const Offer mine_;
    Offer theirs_;
    std::unique_ptr<char[]> scratch_;  // a piece that is added
    // The words have no content. Their places outlive the messages below.
    std::vector<char> words_;
    char word_ = 0;
    Pending offer_, done_;
    std::vector<Pending> ready_;  // for each hop but the first
    std::vector<Pending> sent_;
};

}  // namespace ddprun::trainer
