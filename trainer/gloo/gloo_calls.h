// The collectives, made of messages between two ranks over Gloo's connections.
//
// Gloo's own algorithms are not used: when a connection fails at the wrong moment, the send that
// its thread was about to begin is told to nobody, and whoever waits for it waits until the
// time-out. Here every wait is on a buffer that we know, and abort() ends them all. (So there is
// also a reduce-scatter with a ring's traffic, which Gloo lacks.)
//
// Rings for what is large on all ranks, trees for one root; the order of additions depends on the
// number of ranks only. Thread: one carries out (run(), finish(), all_gather(), exchange(), and the
// end of each ring); start(), start_all_gather() and abort() any, also several at the same time and
// beside it, each call on a channel of its own: they touch no state but Gloo's connections, which
// have their locks. Failures are exceptions: see error_of_gloo.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "trainer/gloo/gloo_messages.h"
#include "trainer/gloo/gloo_ring.h"
#include "trainer/group/operation.h"

namespace ddprun::trainer {

class GlooCalls {
  public:
    explicit GlooCalls(std::shared_ptr<::gloo::Context> mesh);

    using Channel = GlooMessages::Channel;

    // A collective of at least one element, or a barrier. Each has a channel of its own.
    void run(const Operation& operation, Channel channel);

    // The first messages of an all-reduce that run() would carry out, and its second half. Null
    // for what cannot begin before its turn.
    std::unique_ptr<GlooRing> start(const Operation& operation, Channel channel);
    void finish(const Operation& operation, GlooRing& ring);

    // `bytes` of each rank, one behind the other; and the same, with only its first messages sent.
    void all_gather(const void* in, void* out, std::size_t bytes, Channel channel) {
        start_all_gather(in, out, bytes, channel)->finish();
    }
    std::unique_ptr<GlooRing> start_all_gather(const void* in, void* out, std::size_t bytes,
                                               Channel channel);

    // See GlooMessages.
    void exchange(Channel channel, const void* out, std::size_t out_bytes, int to, void* in,
                  std::size_t in_bytes, int from) {
        messages_.exchange(channel, out, out_bytes, to, in, in_bytes, from);
    }
    void abort() { messages_.abort(); }

  private:
    using Bytes = std::vector<char>;
    using Part = GlooRing::Part;
    using Hops = std::vector<GlooRing::Hop>;

    Part part_of(const Buffer& buffer, int index) const;
    Hops reduce_hops(const Buffer& buffer, int last) const;
    Hops gather_hops(const Buffer& buffer, int first) const;
    std::unique_ptr<GlooRing> ring_of(const Operation& o, Channel channel);
    void all_reduce(const Operation& o, Channel channel);
    void reduce_scatter(const Operation& o, Channel channel);
    void reduce(const Operation& o, Channel channel);
    void broadcast(const Operation& o, Channel channel);
    void gather(const Operation& o, Channel channel);
    void scatter(const Operation& o, Channel channel);
    void all_to_all(const Operation& o, Channel channel);
    void barrier(Channel channel);

    // An index that may have run over either end of the ring.
    int around(int index) const { return (index % size_ + size_) % size_; }

    GlooMessages messages_;
    const int rank_, size_;
};

}  // namespace ddprun::trainer
