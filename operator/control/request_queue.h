// What gRPC's threads leave for the loop: requests that wait for an answer. Every request is
// answered, by the loop or by its end.
//
// Thread: requests are made and queued on gRPC's threads, and answered on the loop.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

namespace ddprun::rendezvous {

// Connect and ask again: another node leads, or will.
// The details of a status that a node has made, and not gRPC, which knows of lost connections only.
inline constexpr const char* kSaid = "said by the node";

inline grpc::Status leads_no_more() {
    return {grpc::StatusCode::UNAVAILABLE, "this node leads no more", kSaid};
}

// A request that gRPC waits for. If nobody answers it, because the service ends, its end does.
class Request {
  public:
    explicit Request(grpc::ServerUnaryReactor* reactor) : reactor_(reactor) {}
    Request(const Request&) = delete;
    Request& operator=(const Request&) = delete;
    ~Request() {
        if (reactor_) reactor_->Finish(leads_no_more());
    }
    void finish(const grpc::Status& status) { std::exchange(reactor_, nullptr)->Finish(status); }

  private:
    grpc::ServerUnaryReactor* reactor_;
};

// After close() nothing is taken any more; what is dropped answers itself (Request).
class RequestQueue {
  public:
    using Work = std::function<void()>;
    explicit RequestQueue(boost::asio::io_context& loop) : loop_(loop) {}

    void run_later(const std::shared_ptr<RequestQueue>& self, Work work) {
        const std::lock_guard held(lock_);
        if (is_closed_) return;
        work_.push_back(std::move(work));
        boost::asio::post(loop_, [weak = std::weak_ptr(self)] {
            if (const auto queue = weak.lock()) queue->run_one();
        });
    }
    void close() {
        std::deque<Work> dropped;
        const std::lock_guard held(lock_);
        is_closed_ = true;
        dropped.swap(work_);
    }

  private:
    void run_one() {
        Work work;
        {
            const std::lock_guard held(lock_);
            if (work_.empty()) return;
            work = std::move(work_.front());
            work_.pop_front();
        }
        work();
    }

    boost::asio::io_context& loop_;
    std::mutex lock_;
    bool is_closed_ = false;
    std::deque<Work> work_;
};

}  // namespace ddprun::rendezvous
