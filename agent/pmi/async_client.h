// The store client for coroutines: same calls, answers and errors as store/client/client.h, on
// the caller's loop.
//
//   AsyncStoreClient client(io.get_executor(), "node1", 29500);
//   Result<> there = co_await client.connect(60s);
//   Result<std::string> value = co_await client.run(tasks::get("k"), 5s);
//
// Thread: the executor's. One call at a time; to wait for a key beside other calls, use a second
// client. A call that is cancelled (by Asio's cancellation, or by `||` with something faster) gives
// up the connection, like a call without an answer in time. The client must outlive its calls.
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
#include "store/client/client_state.h"
#include "store/client/tasks.h"

namespace ddprun::store {

class AsyncStoreClient {
  public:
    template <class T = void>
    using Awaitable = boost::asio::awaitable<Result<T>>;

    AsyncStoreClient(boost::asio::any_io_executor executor, std::string host, std::uint16_t port,
                     Dialect dialect = Dialect::unknown);

    // Retries until the store answers or the time is up. Call it once, before the first run().
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

    const std::string& address() const { return state_.address(); }  // host:port
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
    // A call is under way.
    bool busy_ = false;
};

}  // namespace ddprun::store
