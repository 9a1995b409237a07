// GlooCalls: the collectives, built from messages between two ranks.
//
// Gloo's own algorithms are not used. If a connection fails while Gloo's thread is about to begin a
// send that it had put off, Gloo drops this send and wakes nobody, so its waiter hangs until the
// timeout. Here every wait is on a buffer that we know, and abort() ends all waits. There is also a
// reduce-scatter with the traffic of a ring, which Gloo lacks.
//
// All-reduce, reduce-scatter and all-gather use rings: where all ranks share a host, and may read
// each other's memory, large buffers go through that, else everything goes in messages. Reduce and
// broadcast use binomial trees. Gather and scatter connect the root with each rank directly. The
// order of the additions depends only on the number of ranks.
//
// Threads: one thread carries out operations: share_memory(), run(), all_gather(), exchange(), and
// finishing and destroying a ring. Any thread may call start(), start_all_gather() and abort(),
// also at the same time, if each call has its own channel. These functions change only Gloo's
// connections, which have locks. Failures are exceptions, see error_of_gloo() in gloo_mesh.h.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "trainer/gloo/gloo_messages.h"
#include "trainer/gloo/gloo_ring.h"
#include "trainer/gloo/peer_memory.h"
#include "trainer/group/operation.h"

namespace ddprun::trainer {

class GlooCalls {
  public:
    explicit GlooCalls(std::shared_ptr<::gloo::Context> mesh);

    using Channel = GlooMessages::Channel;

    // Lets large buffers go through memory if each rank can read its left neighbour's. All ranks
    // call it, before other operations; a rank with `allowed` false keeps all of them from it.
    void share_memory(bool allowed, Channel channel);
    bool shares_memory() const { return left_.has_value(); }

    // Carries out a collective of at least one element, or a barrier. Each needs its own channel.
    void run(const Operation& operation, Channel channel);

    // An all-reduce, or a reduce-scatter or all-gather in place, in two halves. start() sends the
    // first messages, finish() of the ring does the rest. start() returns null for an operation
    // that cannot begin before its turn; use run() for it.
    std::unique_ptr<GlooRing> start(const Operation& operation, Channel channel);

    // Gathers `bytes` of each rank into `out`, in the order of the ranks. start_all_gather() sends
    // only the first messages; the caller then calls finish() of the ring.
    void all_gather(const void* in, void* out, std::size_t bytes, Channel channel) {
        start_all_gather(in, out, bytes, channel)->finish();
    }
    std::unique_ptr<GlooRing> start_all_gather(const void* in, void* out, std::size_t bytes,
                                               Channel channel);

    // Both as in GlooMessages.
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
    bool is_in_place(const Operation& o) const;
    std::unique_ptr<GlooRing> ring_of(const Operation& o, Channel channel);
    std::unique_ptr<GlooRing> ring(Channel channel, const Buffer& buffer, int first,
                                   const Hops& hops, const GlooRing::Reduction& reduction);
    void all_reduce(const Operation& o, Channel channel);
    void reduce_scatter(const Operation& o, Channel channel);
    void reduce(const Operation& o, Channel channel);
    void broadcast(const Operation& o, Channel channel);
    void gather(const Operation& o, Channel channel);
    void scatter(const Operation& o, Channel channel);
    void all_to_all(const Operation& o, Channel channel);
    void barrier(Channel channel);

    // Maps an index that has left the ring at either end to a rank. (In C++ -1 % n is -1.)
    int around(int index) const { return (index % size_ + size_) % size_; }

    GlooMessages messages_;
    const int rank_, size_;
    std::optional<PeerMemory> left_;       // the left neighbour's, if all can read theirs
    std::atomic<std::uint64_t> marks_{0};  // the last MemoryMark's value
};

}  // namespace ddprun::trainer
