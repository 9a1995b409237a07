// GlooMessages: messages between two ranks over Gloo's connections. Every wait is on a buffer that
// this class knows, so abort() can end all of them.
//
// Messages on different channels never meet. On one channel they keep their order. A message whose
// receive is not posted yet stays with its sender, because Gloo's receiver first announces what it
// waits for. A receive that is posted early saves the time of this announcement.
//
// Threads: send(), receive() and abort() from any thread, the waits from one. Failures are
// exceptions, as in Gloo: error_of_gloo() in gloo_mesh.h turns them into errors.
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
    // Gloo calls it a slot.
    using Channel = std::uint64_t;
    // A message that was posted. Its memory must stay until this object is destroyed.
    using Pending = std::unique_ptr<::gloo::transport::UnboundBuffer>;

    explicit GlooMessages(std::shared_ptr<::gloo::Context> mesh) : mesh_(std::move(mesh)) {}

    int rank() const { return mesh_->rank; }
    int size() const { return mesh_->size; }

    // Both post a message and return at once.
    Pending send(Channel channel, const void* data, std::size_t bytes, int to);
    Pending receive(Channel channel, void* data, std::size_t bytes, int from);
    // Both block until the message has gone or come, but at most for the timeout of Gloo's context.
    void wait_sent(Pending& pending);
    void wait_received(Pending& pending);

    // Sends and receives at the same time, and waits for both. A half whose pointer is null or
    // which has no bytes is left out.
    void exchange(Channel channel, const void* out, std::size_t out_bytes, int to, void* in,
                  std::size_t in_bytes, int from);

    // Ends all waits. Every later wait fails at once.
    void abort();

  private:
    class Waiting;

    const std::shared_ptr<::gloo::Context> mesh_;
    std::mutex mutex_;
    bool aborted_ = false;
    std::set<::gloo::transport::UnboundBuffer*> waiting_;  // those that abort() has to end
};

}  // namespace ddprun::trainer
