// The collectives, made of messages between two ranks over Gloo's connections.
//
// Gloo's own algorithms are not used: when a connection fails at the wrong moment, the send that
// its thread was about to begin is told to nobody, and whoever waits for it waits until the
// time-out. Here every wait is on a buffer that we know, and abort() ends them all. (So there is
// also a reduce-scatter with a ring's traffic, which Gloo lacks.)
//
// Rings for what is large on all ranks, trees for one root; the order of additions depends on the
// number of ranks only. Thread: one, but for abort(). Failures are exceptions: see error_of_gloo.
#pragma once

#include <gloo/context.h>
#include <gloo/transport/unbound_buffer.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "trainer/operation.h"

namespace ddprun::trainer {

class GlooCalls {
  public:
    explicit GlooCalls(std::shared_ptr<::gloo::Context> mesh);

    // Messages of two channels never meet; within one they keep their order. Collectives of one
    // shape have a channel.
    using Channel = std::uint64_t;

    // A collective of at least one element, or a barrier.
    void run(const Operation& operation, Channel channel);

    // `bytes` of each rank, one behind the other.
    void all_gather(const void* in, void* out, std::size_t bytes, Channel channel);

    // Sends and receives at the same time; a half without bytes is left out.
    void exchange(Channel channel, const void* out, std::size_t out_bytes, int to, void* in,
                  std::size_t in_bytes, int from);

    // Ends the waiting now and from now on. Any thread.
    void abort();

  private:
    using Bytes = std::vector<char>;
    using Pending = std::unique_ptr<::gloo::transport::UnboundBuffer>;
    struct Part {
        char* data;
        std::size_t bytes;
    };

    Pending send(Channel channel, const void* data, std::size_t bytes, int to);
    Pending receive(Channel channel, void* data, std::size_t bytes, int from);
    void wait_sent(Pending& pending);
    void wait_received(Pending& pending);
    class Waiting;

    Part part_of(const Buffer& buffer, int index) const;
    void reduce_part(const Operation& o, Part own, Part out_going, Channel channel);
    void ring_reduce_scatter(const Operation& o, const Buffer& buffer, int last, Channel channel);
    void ring_all_gather(const Buffer& buffer, int first, Channel channel);
    void all_reduce(const Operation& o, Buffer buffer, Channel channel);
    void reduce_scatter(const Operation& o, Channel channel);
    void reduce(const Operation& o, Channel channel);
    void broadcast(const Operation& o, Channel channel);
    void gather(const Operation& o, Channel channel);
    void scatter(const Operation& o, Channel channel);
    void all_to_all(const Operation& o, Channel channel);
    void barrier(Channel channel);

    // An index that may have run over either end of the ring.
    int around(int index) const { return (index % size_ + size_) % size_; }
    int right() const { return around(rank_ + 1); }
    int left() const { return around(rank_ - 1); }

    const std::shared_ptr<::gloo::Context> mesh_;
    const int rank_, size_;
    Bytes scratch_;
    std::mutex mutex_;
    bool aborted_ = false;
    std::set<::gloo::transport::UnboundBuffer*> waiting_;
};

}  // namespace ddprun::trainer
