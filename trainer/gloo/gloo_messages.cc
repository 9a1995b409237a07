// Posts messages on Gloo's buffers and keeps a list of those that are waited for.
#include "trainer/gloo/gloo_messages.h"

#include <gloo/common/error.h>

namespace ddprun::trainer {

// A buffer has one direction, but it is not known here which one, so both of its waits are ended.
void GlooMessages::abort() {
    std::lock_guard lock(mutex_);
    aborted_ = true;
    for (auto* buffer : waiting_) {
        buffer->abortWaitSend();
        buffer->abortWaitRecv();
    }
}

// Registers a buffer with abort() for the time of a wait. There is no gap. A wait that begins after
// abort() is refused by the constructor. An abort between the constructor and Gloo's own wait is
// kept by the buffer, which then does not wait.
class GlooMessages::Waiting {
  public:
    Waiting(GlooMessages& messages, ::gloo::transport::UnboundBuffer* buffer)
        : messages_(messages), buffer_(buffer) {
        std::lock_guard lock(messages_.mutex_);
        if (messages_.aborted_) throw ::gloo::IoException("Connection given up: the group is over");
        messages_.waiting_.insert(buffer_);
    }
    ~Waiting() {
        std::lock_guard lock(messages_.mutex_);
        messages_.waiting_.erase(buffer_);
    }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

    // Gloo's waits return false when they were aborted. A time-out is an exception of Gloo's own.
    void check(bool completed) const {
        if (!completed) throw ::gloo::IoException("Connection given up: the wait was aborted");
    }

  private:
    GlooMessages& messages_;
    ::gloo::transport::UnboundBuffer* buffer_;
};

GlooMessages::Pending GlooMessages::send(Channel channel, const void* data, std::size_t bytes,
                                         int to) {
    // Gloo has one type of buffer for both directions. It only reads from this one.
    auto pending = mesh_->createUnboundBuffer(const_cast<void*>(data), bytes);
    pending->send(to, channel);
    return pending;
}

// The receiver announces here what it waits for; the sender's data may follow at once.
GlooMessages::Pending GlooMessages::receive(Channel channel, void* data, std::size_t bytes,
                                            int from) {
    auto pending = mesh_->createUnboundBuffer(data, bytes);
    pending->recv(from, channel);
    return pending;
}

void GlooMessages::wait_sent(Pending& pending) {
    const Waiting waiting(*this, pending.get());
    waiting.check(pending->waitSend(mesh_->getTimeout()));
}

void GlooMessages::wait_received(Pending& pending) {
    const Waiting waiting(*this, pending.get());
    waiting.check(pending->waitRecv(mesh_->getTimeout()));
}

void GlooMessages::exchange(Channel channel, const void* out, std::size_t out_bytes, int to,
                            void* in, std::size_t in_bytes, int from) {
    // The receive is posted first: the other side may be waiting for its announcement.
    Pending received, sent;
    if (in && in_bytes) received = receive(channel, in, in_bytes, from);
    if (out && out_bytes) sent = send(channel, out, out_bytes, to);
    if (received) wait_received(received);
    if (sent) wait_sent(sent);
}

}  // namespace ddprun::trainer
