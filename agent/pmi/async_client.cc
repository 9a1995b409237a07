// The asynchronous shell around Greeting and Call: sends, receives and waits as these machines ask
// for.
#include "agent/pmi/async_client.h"

#include <algorithm>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <tuple>
#include <variant>

#include "base/loop/ended_by.h"

namespace ddprun::store {
namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr auto kWithError = asio::as_tuple(asio::use_awaitable);

// The steady clock: a step of the time of day must not end a wait.
Deadline now() { return Deadline::clock::now(); }

// `closed` tells callers that the connection was lost; everything else means that there is none.
Error from_code(const error_code& code) {
    if (code == asio::error::eof)
        return Error(ErrorCode::closed, "the connection was closed by the store");
    const bool ended = code == asio::error::connection_reset || code == asio::error::broken_pipe;
    return Error(ended ? ErrorCode::closed : ErrorCode::unavailable, code.message());
}

Error late() { return Error(ErrorCode::timed_out, "no answer in time"); }

// Runs an operation with a time limit.
template <class T>
asio::awaitable<Result<T>> answered_by(asio::steady_timer& timer, Deadline deadline,
                                       asio::awaitable<std::tuple<error_code, T>> operation) {
    auto ended = co_await ended_by(timer, deadline, std::move(operation));
    if (!ended) co_return late();
    auto [code, value] = std::move(*ended);
    if (code) co_return from_code(code);
    co_return std::move(value);
}

// Guards one call. If the coroutine is destroyed before done(), half a request may have been sent
// or half an answer received. The connection is closed then.
class InCall {
  public:
    InCall(bool& busy, asio::ip::tcp::socket& socket) : busy_(busy), socket_(socket) {
        DDPRUN_CHECK(!busy, "one call at a time for a store client");
        busy_ = true;
    }
    InCall(const InCall&) = delete;
    InCall& operator=(const InCall&) = delete;
    ~InCall() {
        busy_ = false;
        error_code ignored;
        if (!done_) socket_.close(ignored);
    }
    void done() { done_ = true; }

  private:
    bool& busy_;
    asio::ip::tcp::socket& socket_;
    bool done_ = false;
};

}  // namespace

AsyncStoreClient::AsyncStoreClient(asio::any_io_executor executor, std::string host,
                                   std::uint16_t port, Dialect dialect)
    : host_(std::move(host)),
      port_(port),
      dialect_(dialect),
      state_(host_, port, dialect),
      socket_(executor),
      timer_(executor) {}

AsyncStoreClient::Awaitable<> AsyncStoreClient::connect(Timeout timeout) {
    const Deadline deadline = now() + timeout;
    Greeting greeting(dialect_);
    for (Timeout pause = kFirstRetry;; pause = std::min(pause * 3 / 2, kLongestRetry)) {
        const Result<> connected = co_await connect_once(greeting, deadline);
        if (connected) co_return connected;
        // Another program answers at this address. Trying again would not help.
        if (connected.error().code() == ErrorCode::malformed)
            co_return state_.said(connected.error());
        if (now() >= deadline)
            co_return state_.said(gave_up_connecting(connected.error(), timeout));
        timer_.expires_at(std::min(deadline, now() + pause));
        (void)co_await timer_.async_wait(kWithError);
    }
}

// One attempt. It may need several connections, because a server of another dialect closes the
// connection instead of answering.
AsyncStoreClient::Awaitable<> AsyncStoreClient::connect_once(Greeting& greeting,
                                                             Deadline deadline) {
    const int began_anew = greeting.began_anew();
    for (;;) {
        const Result<Greeting::Verdict> verdict = co_await greet(greeting, deadline);
        if (!verdict) co_return verdict.error();
        if (*verdict == Greeting::Verdict::ready) {
            state_.connected(greeting.peer());
            co_return Result<>{};
        }
        if (greeting.began_anew() > began_anew)
            co_return Error(ErrorCode::closed, "the connection was closed before an answer");
    }
}

AsyncStoreClient::Awaitable<Greeting::Verdict> AsyncStoreClient::greet(Greeting& greeting,
                                                                       Deadline deadline) {
    if (const Result<> opened = co_await open(deadline); !opened) co_return opened.error();
    for (;;) {
        // A server of an old dialect may stay silent at a greeting that it does not know, so the
        // wait for its answer is short. A current server is given the whole time.
        const Deadline answer_by =
            greeting.impatient() ? std::min(deadline, now() + kAnswerToGreeting) : deadline;
        Result<std::size_t> got = std::size_t{0};
        std::array<char, 64> bytes;
        if (const std::string output = greeting.output(); !output.empty()) {
            if (const Result<> sent = co_await send(output, answer_by); !sent) got = sent.error();
        }
        if (got) got = co_await receive_some(bytes, answer_by);
        if (!got) {
            const bool late = got.error().code() == ErrorCode::timed_out;
            if (late && answer_by == deadline) co_return got.error();
            co_return greeting.ended();
        }
        const auto verdict = greeting.received({bytes.data(), *got});
        if (!verdict) co_return verdict.error();
        if (*verdict != Greeting::Verdict::more) co_return *verdict;
    }
}

AsyncStoreClient::Awaitable<> AsyncStoreClient::open(Deadline deadline) {
    error_code ignored;
    socket_.close(ignored);
    asio::ip::tcp::resolver resolver(socket_.get_executor());
    const auto found = co_await answered_by<asio::ip::tcp::resolver::results_type>(
        timer_, deadline,
        resolver.async_resolve(host_, std::to_string(port_),
                               asio::ip::resolver_base::numeric_service, kWithError));
    if (!found) co_return found.error();
    const auto connected = co_await answered_by<asio::ip::tcp::endpoint>(
        timer_, deadline, asio::async_connect(socket_, *found, kWithError));
    if (!connected) co_return connected.error();
    // Each request is small and waited for. Nagle's algorithm would delay it.
    socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
    co_return Result<>{};
}

AsyncStoreClient::Awaitable<Answer> AsyncStoreClient::make_call(Task task, Timeout timeout) {
    InCall in_call(busy_, socket_);
    const Deadline begun = now();
    const Deadline deadline = begun + timeout;
    // The socket was closed by InCall: an earlier call was cancelled.
    if (state_.is_connected() && !socket_.is_open()) state_.abandoned();
    if (!state_.is_connected()) {
        if (!state_.may_connect(task)) co_return state_.refusal();
        if (const Result<> again = co_await reconnect(deadline); !again) co_return again.error();
    }
    const bool repeatable = is_repeatable(task);
    // Kept for a repetition, because the first attempt consumes the task. Only calls that read are
    // copied; their tasks are small.
    const Task again = repeatable ? task : Task{};
    Result<Answer> result = co_await call_once(std::move(task), timeout, begun);
    if (repeatable && state_.may_repeat(again) && now() < deadline &&
        co_await reconnect(deadline)) {
        result = co_await call_once(again, timeout, begun);
    }
    if (state_.is_connected()) in_call.done();
    if (!result) co_return state_.said(result.error());
    co_return result;
}

AsyncStoreClient::Awaitable<Answer> AsyncStoreClient::call_once(Task task, Timeout timeout,
                                                                Deadline begun) {
    // The task is moved away in the next line.
    const Operation operation = task.request.operation;
    Call call(std::move(task), state_.peer(), timeout, begun);
    co_await exchange(call);
    Result<Answer> result = call.result();
    state_.note(operation, call, result);
    co_return result;
}

asio::awaitable<void> AsyncStoreClient::exchange(Call& call) {
    while (!call.done()) {
        if (call.has_output()) {
            const std::string output = call.output();
            const Result<> sent = co_await send(output, call.deadline());
            sent ? call.sent() : call.lost(sent.error());
            continue;
        }
        const Result<std::size_t> got = co_await receive_some(call.room(), call.deadline());
        if (got) {
            call.received(*got, now());
        } else if (got.error().code() == ErrorCode::timed_out) {
            call.timed_out(now());
        } else {
            call.lost(got.error());
        }
    }
}

// Tries once only: if the store is gone, waiting for keys in it makes no sense. The dialect is
// known already.
AsyncStoreClient::Awaitable<> AsyncStoreClient::reconnect(Deadline deadline) {
    Greeting greeting(state_.peer().dialect);
    const Result<> connected =
        co_await connect_once(greeting, std::min(deadline, now() + kAnswerToGreeting));
    if (connected) co_return connected;
    co_return state_.no_new_one(connected.error());
}

AsyncStoreClient::Awaitable<> AsyncStoreClient::send(const std::string& bytes, Deadline deadline) {
    const auto sent = co_await answered_by<std::size_t>(
        timer_, deadline, asio::async_write(socket_, asio::buffer(bytes), kWithError));
    if (!sent) co_return sent.error();
    co_return Result<>{};
}

AsyncStoreClient::Awaitable<std::size_t> AsyncStoreClient::receive_some(std::span<char> room,
                                                                        Deadline deadline) {
    co_return co_await answered_by<std::size_t>(
        timer_, deadline,
        socket_.async_receive(asio::buffer(room.data(), room.size()), kWithError));
}

}  // namespace ddprun::store
