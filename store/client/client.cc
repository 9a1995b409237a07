// The blocking shell around Greeting and Call: sends, receives and waits as these machines ask for.
#include "store/client/client.h"

#include <poll.h>

#include <algorithm>
#include <array>

namespace ddprun::store {
namespace {

Deadline now() { return Deadline::clock::now(); }

// Runs one call to its end. The machine decides; this loop only moves bytes.
void exchange(ClientSocket& socket, Call& call) {
    while (!call.done()) {
        if (call.has_output()) {
            const Result<> sent = socket.send(call.output(), call.deadline());
            sent ? call.sent() : call.lost(sent.error());
            continue;
        }
        const std::span<char> room = call.room();
        const Result<std::size_t> got =
            socket.receive_some(room.data(), room.size(), call.deadline());
        if (got) {
            call.received(*got, now());
        } else if (got.error().code() == ErrorCode::timed_out) {
            call.timed_out(now());
        } else {
            call.lost(got.error());
        }
    }
}

}  // namespace

Result<StoreClient> StoreClient::connect(const std::string& host, std::uint16_t port,
                                         Timeout timeout, Dialect dialect) {
    const Deadline deadline = now() + timeout;
    StoreClient client(host, port, dialect);
    Greeting greeting(dialect);
    for (Timeout pause = kFirstRetry;; pause = std::min(pause * 3 / 2, kLongestRetry)) {
        const Result<> connected = client.connect_once(greeting, deadline);
        if (connected) return client;
        // Another program answers at this address. Trying again would not help.
        if (connected.error().code() == ErrorCode::malformed)
            return client.state_.said(connected.error());
        const auto left = std::chrono::duration_cast<Timeout>(deadline - now());
        if (left <= Timeout{0})
            return client.state_.said(gave_up_connecting(connected.error(), timeout));
        // A worker may start before the node with the store does. Trying is the only way to find
        // out when it is there. poll() without descriptors is a sleep.
        ::poll(nullptr, 0, static_cast<int>(std::min(pause, left).count()));
    }
}

// One attempt. It may need several connections, because a server of another dialect closes the
// connection instead of answering.
Result<> StoreClient::connect_once(Greeting& greeting, Deadline deadline) {
    const int began_anew = greeting.began_anew();
    for (;;) {
        const Result<Greeting::Verdict> verdict = greet(greeting, deadline);
        if (!verdict) return verdict.error();
        if (*verdict == Greeting::Verdict::ready) {
            state_.connected(greeting.peer());
            return {};
        }
        if (greeting.began_anew() > began_anew)
            return Error(ErrorCode::closed, "the connection was closed before an answer");
    }
}

Result<Greeting::Verdict> StoreClient::greet(Greeting& greeting, Deadline deadline) {
    Result<ClientSocket> socket = ClientSocket::connect(host_, port_, deadline);
    if (!socket) return socket.error();
    for (;;) {
        // A server of an old dialect may stay silent at a greeting that it does not know, so the
        // wait for its answer is short. A current server is given the whole time.
        const Deadline answer_by =
            greeting.impatient() ? std::min(deadline, now() + kAnswerToGreeting) : deadline;
        Result<std::size_t> got = std::size_t{0};
        std::array<char, 64> bytes;
        if (const std::string output = greeting.output(); !output.empty()) {
            if (Result<> sent = socket->send(output, answer_by); !sent) got = sent.error();
        }
        if (got) got = socket->receive_some(bytes.data(), bytes.size(), answer_by);
        if (!got) {
            const bool late = got.error().code() == ErrorCode::timed_out;
            if (late && answer_by == deadline) return got.error();
            return greeting.ended();
        }
        const auto verdict = greeting.received({bytes.data(), *got});
        if (!verdict) return verdict.error();
        // Only a connection whose greeting succeeded is kept.
        if (*verdict == Greeting::Verdict::ready) socket_ = std::move(*socket);
        if (*verdict != Greeting::Verdict::more) return *verdict;
    }
}

Result<Answer> StoreClient::make_call(Task task, Timeout timeout) {
    const Deadline begun = now();
    const Deadline deadline = begun + timeout;
    if (!state_.is_connected()) {
        if (!state_.may_connect(task)) return state_.refusal();
        if (const Result<> again = reconnect(deadline); !again) return again.error();
    }
    const bool repeatable = is_repeatable(task);
    // Kept for a repetition, because the first attempt consumes the task. Only calls that read are
    // copied; their tasks are small.
    const Task again = repeatable ? task : Task{};
    Result<Answer> result = call_once(std::move(task), timeout, begun);
    if (repeatable && state_.may_repeat(again) && now() < deadline && reconnect(deadline)) {
        result = call_once(again, timeout, begun);
    }
    if (!result) return state_.said(result.error());
    return result;
}

Result<Answer> StoreClient::call_once(Task task, Timeout timeout, Deadline begun) {
    // The task is moved away in the next line.
    const Operation operation = task.request.operation;
    Call call(std::move(task), state_.peer(), timeout, begun);
    exchange(*socket_, call);
    Result<Answer> result = call.result();
    state_.note(operation, call, result);
    if (!state_.is_connected()) socket_.reset();
    return result;
}

// Tries once only: if the store is gone, waiting for keys in it makes no sense. The dialect is
// known already.
Result<> StoreClient::reconnect(Deadline deadline) {
    Greeting greeting(state_.peer().dialect);
    const Result<> connected =
        connect_once(greeting, std::min(deadline, now() + kAnswerToGreeting));
    if (connected) return {};
    return state_.no_new_one(connected.error());
}

}  // namespace ddprun::store
