// One caller of Watch. It gets the newest reply; those between are left out while it does not read.
//
// Thread: offer() and end() come from the loop, the rest from gRPC's threads. It destroys itself
// when gRPC has done with it.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <memory>
#include <mutex>
#include <utility>

#include "proto/control.grpc.pb.h"

namespace ddprun::rendezvous {

class Watcher : public grpc::ServerWriteReactor<control::StatusReply> {
  public:
    using Reply = std::shared_ptr<const control::StatusReply>;

    static std::shared_ptr<Watcher> make() {
        const auto watcher = std::make_shared<Watcher>();
        watcher->self_ = watcher;
        return watcher;
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

    void OnWriteDone(bool ok) override {
        const std::lock_guard held(lock_);
        written_.reset();
        if (ok) return write();
        finish(grpc::Status::CANCELLED);
    }
    void OnCancel() override {
        const std::lock_guard held(lock_);
        finish(grpc::Status::CANCELLED);
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
        StartWrite(written_.get());
    }
    void finish(const grpc::Status& status) {
        if (!std::exchange(is_over_, true)) Finish(status);
    }

    mutable std::mutex lock_;
    Reply next_, written_;  // written_: gRPC is sending it
    bool ends_ = false, is_over_ = false;
    grpc::Status status_;
    std::shared_ptr<Watcher> self_;  // until OnDone
};

}  // namespace ddprun::rendezvous
