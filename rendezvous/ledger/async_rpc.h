// Makes a gRPC call something that a coroutine on the loop can co_await. gRPC calls back on a
// thread of its own; that callback only posts to the loop. Besides FileThread this is the only
// place where another thread posts to the loop.
//
// Thread: RpcCalls is made, used and destroyed on the loop's thread. Only answered() and finished()
// are called by gRPC's threads.
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

// The calls that gRPC has not answered yet. Before the loop's objects go away, cancel_all() cancels
// them and waits until gRPC holds nothing of the loop any more. That depends on gRPC's own threads
// only, never on the network.
class RpcCalls {
  public:
    using Number = std::int64_t;

    // Registers a call, so that it can be cancelled.
    Number started(grpc::ClientContext& call) {
        const std::lock_guard held(lock_);
        ++outstanding_;
        calls_.emplace(++newest_, &call);
        return newest_;
    }
    // The answer has come. The caller may destroy the context from now on, but gRPC still holds
    // something of the loop.
    void answered(Number number) {
        const std::lock_guard held(lock_);
        calls_.erase(number);
    }
    // gRPC's callback is nearly over and touches nothing of the loop any more.
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
    std::map<Number, grpc::ClientContext*> calls_;  // calls that can still be cancelled
    Number newest_ = 0;
    // Calls between started() and finished().
    int outstanding_ = 0;
};

// Begins a call with `start(callback)`, and resumes the coroutine on its executor with the call's
// status. While the call runs, io_context::run() does not return. What `start` refers to must live
// in the coroutine's frame. Status codes: those of the rpc, DEADLINE_EXCEEDED, and CANCELLED after
// cancel_all().
template <class Start>
boost::asio::awaitable<grpc::Status> async_rpc(std::shared_ptr<RpcCalls> calls,
                                               grpc::ClientContext& context, Start start) {
    namespace asio = boost::asio;
    const auto initiate = [&](auto handler) {
        using Handler = decltype(handler);
        // Std::function must be copyable, a handler is not.
        auto kept = std::make_shared<Handler>(std::move(handler));
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
