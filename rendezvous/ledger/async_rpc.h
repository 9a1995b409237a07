// How a gRPC call becomes something to co_await on the loop. gRPC calls back on a thread of its
// own, which does nothing but post to the loop: the second of the program's posting points (the
// first is the FileThread).
//
// Thread: RpcCalls is made, used and destroyed on the loop's; only answered() and finished() come
// from gRPC's threads.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>

#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace ddprun {

// The calls that gRPC has not answered yet. Who goes away cancels them and waits until gRPC has let
// go of the loop: that is a matter of its own threads, not of any network.
class RpcCalls {
  public:
    using Number = std::int64_t;

    Number started(grpc::ClientContext& call) {
        const std::lock_guard held(lock_);
        ++outstanding_;
        calls_.emplace(++newest_, &call);
        return newest_;
    }
    // Its context may go from now on, but gRPC still holds something of the loop's.
    void answered(Number number) {
        const std::lock_guard held(lock_);
        calls_.erase(number);
    }
    void finished() {
        const std::lock_guard held(lock_);
        --outstanding_;
        changed_.notify_all();
    }
    void cancel_all() {
        std::unique_lock held(lock_);
        for (const auto& [number, call] : calls_) call->TryCancel();
        changed_.wait(held, [this] { return outstanding_ == 0; });
    }

  private:
    std::mutex lock_;
    std::condition_variable changed_;
    std::map<Number, grpc::ClientContext*> calls_;  // that can be cancelled
    Number newest_ = 0;
    int outstanding_ = 0;
};

// Begins a call by `start(callback)` and comes back on the coroutine's executor with its status.
// The call keeps io_context::run() from returning. What `start` refers to must live in the
// coroutine's frame. Status codes: those of the rpc, deadline_exceeded, cancelled after
// cancel_all().
template <class Start>
boost::asio::awaitable<grpc::Status> async_rpc(std::shared_ptr<RpcCalls> calls,
                                               grpc::ClientContext& context, Start start) {
    namespace asio = boost::asio;
    const auto initiate = [&](auto handler) {
        using Handler = decltype(handler);
        auto kept = std::make_shared<Handler>(std::move(handler));  // std::function wants copies
        auto guard = asio::make_work_guard(asio::get_associated_executor(*kept));
        const auto number = calls->started(context);
        start([calls, number, kept = std::move(kept),
               guard = std::move(guard)](grpc::Status status) mutable {
            calls->answered(number);
            const auto executor = guard.get_executor();
            asio::post(executor, [kept = std::move(kept), status = std::move(status)]() mutable {
                std::move (*kept)(std::move(status));
            });
            guard.reset();
            calls->finished();
        });
    };
    co_return co_await asio::async_initiate<const asio::use_awaitable_t<>, void(grpc::Status)>(
        initiate, asio::use_awaitable);
}

}  // namespace ddprun
