// One caller of an rpc that answers with a stream. It gets the newest reply; those between are left
// out while it does not read. Who wants none left out offers the next one when there is room.
//
// Thread: offer(), end() and the questions come from the loop, the rest from gRPC's threads. It
// destroys itself when gRPC has done with it.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <functional>
#include <memory>
#include <mutex>
#include <utility>

namespace ddprun::rendezvous {

template <class Message>
class ReplyStream : public grpc::ServerWriteReactor<Message> {
  public:
    using Reply = std::shared_ptr<const Message>;
    // Called on gRPC's threads: a reply has been sent, or the caller has gone.
    using Moved = std::function<void()>;

    static std::shared_ptr<ReplyStream> make(Moved moved = {}) {
        const auto stream = std::make_shared<ReplyStream>();
        stream->self_ = stream;
        stream->moved_ = std::move(moved);
        return stream;
    }

    void offer(Reply reply) {
        const std::lock_guard held(lock_);
        if (is_over_ || ends_) return;
        next_ = std::move(reply);
        write();
    }
    // Ends the stream with this status, after what was offered last.
    void end(const grpc::Status& status) {
        const std::lock_guard held(lock_);
        if (is_over_ || ends_) return;
        ends_ = true;
        status_ = status;
        write();
    }
    bool is_over() const {
        const std::lock_guard held(lock_);
        return is_over_;
    }
    // All that was offered has been sent.
    bool has_room() const {
        const std::lock_guard held(lock_);
        return !is_over_ && !ends_ && !next_ && !written_;
    }

    void OnWriteDone(bool ok) override {
        {
            const std::lock_guard held(lock_);
            written_.reset();
            if (ok)
                write();
            else
                finish(grpc::Status::CANCELLED);
        }
        if (moved_) moved_();
    }
    void OnCancel() override {
        {
            const std::lock_guard held(lock_);
            finish(grpc::Status::CANCELLED);
        }
        if (moved_) moved_();
    }
    void OnDone() override {
        std::unique_lock held(lock_);
        is_over_ = true;
        const auto last = std::exchange(self_, nullptr);
        held.unlock();  // the lock may go with the object
    }

  private:
    void write() {
        if (is_over_ || written_) return;
        if (!next_) {
            if (ends_) finish(status_);
            return;
        }
        written_ = std::exchange(next_, nullptr);
        this->StartWrite(written_.get());
    }
    void finish(const grpc::Status& status) {
        if (!std::exchange(is_over_, true)) this->Finish(status);
    }

    mutable std::mutex lock_;
    Moved moved_;           // set before gRPC has the stream
    Reply next_, written_;  // written_: gRPC is sending it
    bool ends_ = false, is_over_ = false;
    grpc::Status status_;
    std::shared_ptr<ReplyStream> self_;  // until OnDone
};

}  // namespace ddprun::rendezvous
