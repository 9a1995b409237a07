// Messages between two ranks over Gloo's connections: every wait is on a buffer that we know, and
// abort() ends them all.
//
// Messages of two channels never meet; within one they keep their order. A message to which no
// receive was posted yet stays with its sender: Gloo's receiver tells what it waits for. So a
// receive that is posted early saves the time in which that word travels.
//
// Thread: send() and receive() any, the waits one, abort() any. Failures are exceptions: see
// error_of_gloo.
#pragma once

#include <gloo/context.h>
#include <gloo/transport/unbound_buffer.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>

namespace ddprun::trainer {

class GlooMessages {
  public:
    using Channel = std::uint64_t;
    // What was posted; the memory is free again once this is gone.
    using Pending = std::unique_ptr<::gloo::transport::UnboundBuffer>;

    explicit GlooMessages(std::shared_ptr<::gloo::Context> mesh) : mesh_(std::move(mesh)) {}

    int rank() const { return mesh_->rank; }
    int size() const { return mesh_->size; }

    Pending send(Channel channel, const void* data, std::size_t bytes, int to);
    Pending receive(Channel channel, void* data, std::size_t bytes, int from);
    void wait_sent(Pending& pending);
    void wait_received(Pending& pending);

    // Sends and receives at the same time; a half without bytes is left out.
    void exchange(Channel channel, const void* out, std::size_t out_bytes, int to, void* in,
                  std::size_t in_bytes, int from);

    // Ends the waiting now and from now on.
    void abort();

  private:
    class Waiting;

    const std::shared_ptr<::gloo::Context> mesh_;
    std::mutex mutex_;
    bool aborted_ = false;
    std::set<::gloo::transport::UnboundBuffer*> waiting_;
};

}  // namespace ddprun::trainer
