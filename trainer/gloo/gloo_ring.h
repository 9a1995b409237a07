// GlooRing: a buffer that goes around the ring of ranks, one part at a time. All-reduce,
// reduce-scatter and all-gather consist of such traffic (ring algorithms as in Patarasuk and Yuan,
// 2009).
//
// In each hop a rank receives a part from its left neighbour (rank - 1) and adds it to its own
// part, or keeps it as it is. In the next hop its right neighbour gets that part. An average is
// divided by the one rank that has its complete sum, before the others get it.
//
// Parts travel in messages (gloo_message_ring.h), or through the memory of ranks that share a host
// (gloo_memory_ring.h). The constructors of both tell the neighbours what they need to begin;
// finish() does the rest. So a collective that was begun is already moving while the thread that
// will finish it is still busy with the one before.
//
// The order of the additions depends only on the number of ranks. Threads: the constructor in any
// thread; finish() and the destructor in one. The buffers must stay until the destructor. Errors
// are exceptions, see gloo_messages.h.
#pragma once

#include <cstddef>

#include "trainer/group/operation.h"

namespace ddprun::trainer {

class GlooRing {
  public:
    // A range of bytes in the buffer, a whole number of elements.
    struct Part {
        char* data = nullptr;
        std::size_t bytes = 0;
    };
    // What happens with the part that comes in one hop.
    enum class Does {
        keep,     // it replaces this rank's
        add,      // it is added to this rank's
        add_last  // the sum is then complete
    };
    struct Hop {
        Part in;
        Does does;
    };
    // How values are added. Without an addition no hop adds.
    struct Reduction {
        ReduceFunction function = nullptr;
        DataType type = DataType::uint8;
        int divide_by = 1;  // of complete sums

        std::size_t width() const { return size_of(type); }

        // Adds `came` to a part. What came is the sum over the ranks before this one. It is the
        // first operand, so that the order of the additions is the order of the ring.
        void add(const Part& part, const char* came, Does does) const {
            const std::size_t count = part.bytes / width();
            function(part.data, came, part.data, count);
            if (does == Does::add_last && divide_by > 1)
                divide({part.data, count, type}, divide_by);
        }
    };

    GlooRing() = default;
    virtual ~GlooRing() = default;
    GlooRing(const GlooRing&) = delete;
    GlooRing& operator=(const GlooRing&) = delete;

    // Carries out all hops and waits for them.
    virtual void finish() = 0;
};

}  // namespace ddprun::trainer
