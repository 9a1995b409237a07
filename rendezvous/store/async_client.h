// The store client for coroutines: the same calls, answers and errors as client.h, on the caller's
// loop.
//
//   AsyncStoreClient client(io.get_executor(), "node1", 29500);
//   Result<> there = co_await client.connect(60s);
//   Result<std::string> value = co_await client.run(tasks::get("k"), 5s);
//
// Thread: the executor's. One call at a time: to wait for a key beside other calls, use a client of
// its own. Who cancels a call (Asio's cancellation, or an `or` with something that was faster)
// gives up the connection with it, as for a call that got no answer in time. Must outlive its
// calls.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "rendezvous/store/client_state.h"
#include "rendezvous/store/tasks.h"

namespace ddprun::store {

class AsyncStoreClient {
  public:
    template <class T = void>
    using Awaitable = boost::asio::awaitable<Result<T>>;

    AsyncStoreClient(boost::asio::any_io_executor executor, std::string host, std::uint16_t port,
                     Dialect dialect = Dialect::unknown);

    // Tries until the store is there or the time is up. Once, before the first call.
    Awaitable<> connect(Timeout timeout);

    template <class T>
    Awaitable<T> run(TypedTask<T> typed, Timeout timeout) {
        Result<Answer> answer = co_await make_call(std::move(typed.task), timeout);
        if (!answer) co_return answer.error();
        if constexpr (std::is_void_v<T>) {
            co_return Result<T>{};
        } else {
            co_return typed.read(std::move(*answer));
        }
    }

    const std::string& address() const { return state_.address(); }
    const Peer& peer() const { return state_.peer(); }

  private:
    Awaitable<Answer> make_call(Task task, Timeout timeout);
    Awaitable<Answer> call_once(Task task, Timeout timeout, Deadline begun);
    boost::asio::awaitable<void> exchange(Call& call);
    Awaitable<> connect_once(Greeting& greeting, Deadline deadline);
    Awaitable<Greeting::Verdict> greet(Greeting& greeting, Deadline deadline);
    Awaitable<> open(Deadline deadline);
    Awaitable<> reconnect(Deadline deadline);
    Awaitable<> send(const std::string& bytes, Deadline deadline);
    Awaitable<std::size_t> receive_some(std::span<char> room, Deadline deadline);

    std::string host_;
    std::uint16_t port_;
    Dialect dialect_;
    ClientState state_;
    boost::asio::ip::tcp::socket socket_;
    boost::asio::steady_timer timer_;
    bool busy_ = false;
};

}  // namespace ddprun::store
