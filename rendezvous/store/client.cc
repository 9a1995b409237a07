#include "rendezvous/store/client.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace ddprun::store {
namespace {

using std::chrono::milliseconds;

// For the round trip that follows a wait: the answer is on its way, and giving up now would cost
// the connection.
constexpr milliseconds kAnswerAfterWait{10'000};
constexpr milliseconds kFirstRetry{20};
constexpr milliseconds kLongestRetry{500};
constexpr std::size_t kTrustedLength = 16 << 20;  // of a value, taken in memory before it arrives
constexpr std::size_t kKeysToName = 3;

Deadline in(milliseconds timeout) { return Deadline::clock::now() + timeout; }

std::string wire_key(const std::string& key) { return "/" + key; }

std::vector<std::string> wire_keys(const std::vector<std::string>& keys) {
    std::vector<std::string> wire;
    wire.reserve(keys.size());
    for (const std::string& key : keys) wire.push_back(wire_key(key));
    return wire;
}

std::string seconds(milliseconds time) {
    char text[32];
    std::snprintf(text, sizeof text, "%g s", static_cast<double>(time.count()) / 1000.0);
    return text;
}

std::string quoted(const std::string& key) { return '\'' + key.substr(0, 200) + '\''; }

std::string not_set_within(const std::vector<std::string>& keys, milliseconds timeout) {
    if (keys.size() == 1)
        return "key " + quoted(keys[0]) + " was not set within " + seconds(timeout);
    std::string names;
    for (std::size_t i = 0; i < std::min(keys.size(), kKeysToName); ++i) {
        if (i > 0) names += ", ";
        names += quoted(keys[i]);
    }
    if (keys.size() > kKeysToName) names += ", …";
    return "not all of " + std::to_string(keys.size()) + " keys (" + names + ") were set within " +
           seconds(timeout);
}

}  // namespace

Result<StoreClient> StoreClient::connect(const std::string& host, std::uint16_t port,
                                         Timeout timeout) {
    const Deadline deadline = in(timeout);
    for (milliseconds pause = kFirstRetry;; pause = std::min(pause * 3 / 2, kLongestRetry)) {
        Result<StoreClient> client = try_connect(host, port, deadline);
        if (client || client.error().code() == ErrorCode::malformed) return client;
        const auto left =
            std::chrono::duration_cast<milliseconds>(deadline - Deadline::clock::now());
        if (left <= milliseconds{0}) {
            return Error(ErrorCode::unavailable,
                         client.error().sentence() + " (tried for " + seconds(timeout) + ")");
        }
        // Workers start before the store's node has; nothing tells them when it is there but
        // trying.
        ::poll(nullptr, 0, static_cast<int>(std::min(pause, left).count()));
    }
}

Result<StoreClient> StoreClient::try_connect(const std::string& host, std::uint16_t port,
                                             Deadline deadline) {
    const bool v6 = host.find(':') != std::string::npos;
    std::string address = (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
    Result<ClientSocket> socket = ClientSocket::connect(host, port, deadline);
    if (!socket) {
        return Error(socket.error().code(),
                     "store at " + address + ": " + socket.error().sentence());
    }
    StoreClient client(std::move(*socket), std::move(address));
    const Result<> greeted = client.greet(deadline);
    if (!greeted) return greeted.error();
    return client;
}

Result<> StoreClient::greet(Deadline deadline) {
    const auto nonce = static_cast<std::uint32_t>(::getpid());
    if (auto sent = send({Operation::validate, {}, {}, 0}, deadline); !sent) return sent;
    if (auto sent = send({Operation::ping, {}, {}, nonce}, deadline); !sent) return sent;
    const Result<std::uint64_t> echo = receive_number(4, deadline);
    if (!echo) return echo.error();
    if (*echo == nonce) return {};
    return fail(ErrorCode::malformed, "what answers there is not a TCPStore of torch 2.5 or later");
}

Result<> StoreClient::set(const std::string& key, const std::string& value, Timeout timeout) {
    return send({Operation::set, {wire_key(key)}, {value}, 0}, in(timeout));
}

Result<> StoreClient::append(const std::string& key, const std::string& data, Timeout timeout) {
    return send({Operation::append, {wire_key(key)}, {data}, 0}, in(timeout));
}

Result<> StoreClient::multi_set(const std::vector<std::pair<std::string, std::string>>& pairs,
                                Timeout timeout) {
    Request request{Operation::multi_set, {}, {}, 0};
    for (const auto& [key, value] : pairs) {
        request.keys.push_back(wire_key(key));
        request.values.push_back(value);
    }
    return send(request, in(timeout));
}

Result<> StoreClient::queue_push(const std::string& key, const std::string& data, Timeout timeout) {
    return send({Operation::queue_push, {wire_key(key)}, {data}, 0}, in(timeout));
}

Result<std::string> StoreClient::get(const std::string& key, Timeout timeout) {
    const Deadline deadline = in(timeout);
    if (auto there = wait_until({key}, timeout, deadline); !there) return there.error();
    const Deadline answer = std::max(deadline, in(kAnswerAfterWait));
    if (auto sent = send({Operation::get, {wire_key(key)}, {}, 0}, answer); !sent)
        return sent.error();
    return receive_text(answer);
}

Result<std::vector<std::string>> StoreClient::multi_get(const std::vector<std::string>& keys,
                                                        Timeout timeout) {
    const Deadline deadline = in(timeout);
    if (auto there = wait_until(keys, timeout, deadline); !there) return there.error();
    const Deadline answer = std::max(deadline, in(kAnswerAfterWait));
    if (auto sent = send({Operation::multi_get, wire_keys(keys), {}, 0}, answer); !sent) {
        return sent.error();
    }
    std::vector<std::string> values;
    for (std::size_t i = 0; i < keys.size(); ++i) {
        Result<std::string> value = receive_text(answer);
        if (!value) return value.error();
        values.push_back(std::move(*value));
    }
    return values;
}

Result<> StoreClient::wait(const std::vector<std::string>& keys, Timeout timeout) {
    return wait_until(keys, timeout, in(timeout));
}

Result<> StoreClient::wait_until(const std::vector<std::string>& keys, Timeout timeout,
                                 Deadline deadline) {
    if (auto sent = send({Operation::wait, wire_keys(keys), {}, 0}, deadline); !sent) return sent;
    const Result<> readable = socket_.wait_readable(deadline);
    if (!readable && readable.error().code() == ErrorCode::timed_out) {
        return take_back_wait(keys, timeout);
    }
    const Result<std::uint64_t> status =
        receive_number(1, std::max(deadline, in(kAnswerAfterWait)));
    if (!status) return status.error();
    if (*status == static_cast<std::uint8_t>(Status::stop_waiting)) return {};
    return fail(ErrorCode::malformed, "answer " + std::to_string(*status) + " to a wait");
}

// The end of the wait may have crossed our cancellation: then both bytes come, and the keys are
// there after all.
Result<> StoreClient::take_back_wait(const std::vector<std::string>& keys, Timeout timeout) {
    const Deadline deadline = in(kAnswerAfterWait);
    if (auto sent = send({Operation::cancel_wait, {}, {}, 0}, deadline); !sent) return sent;
    Result<std::uint64_t> status = receive_number(1, deadline);
    const bool there = status && *status == static_cast<std::uint8_t>(Status::stop_waiting);
    if (there) status = receive_number(1, deadline);
    if (!status) return status.error();
    if (*status != static_cast<std::uint8_t>(Status::wait_canceled)) {
        return fail(ErrorCode::malformed,
                    "answer " + std::to_string(*status) + " to a cancelled wait");
    }
    if (there) return {};
    return said(ErrorCode::timed_out, not_set_within(keys, timeout));
}

Result<bool> StoreClient::check(const std::vector<std::string>& keys, Timeout timeout) {
    const Deadline deadline = in(timeout);
    if (auto sent = send({Operation::check, wire_keys(keys), {}, 0}, deadline); !sent) {
        return sent.error();
    }
    const Result<std::uint64_t> status = receive_number(1, deadline);
    if (!status) return status.error();
    return *status == static_cast<std::uint8_t>(Status::ready);
}

Result<std::string> StoreClient::compare_set(const std::string& key, const std::string& expected,
                                             const std::string& desired, Timeout timeout) {
    const Deadline deadline = in(timeout);
    const Request request{Operation::compare_set, {wire_key(key)}, {expected, desired}, 0};
    if (auto sent = send(request, deadline); !sent) return sent.error();
    return receive_text(deadline);
}

Result<std::int64_t> StoreClient::add(const std::string& key, std::int64_t delta, Timeout timeout) {
    const Deadline deadline = in(timeout);
    const Request request{Operation::add, {wire_key(key)}, {}, delta};
    if (auto sent = send(request, deadline); !sent) return sent.error();
    const Result<std::uint64_t> sum = receive_number(8, deadline);
    if (!sum) return sum.error();
    return static_cast<std::int64_t>(*sum);
}

Result<bool> StoreClient::delete_key(const std::string& key, Timeout timeout) {
    const Deadline deadline = in(timeout);
    const Request request{Operation::delete_key, {wire_key(key)}, {}, 0};
    if (auto sent = send(request, deadline); !sent) return sent.error();
    const Result<std::uint64_t> removed = receive_number(8, deadline);
    if (!removed) return removed.error();
    return *removed > 0;
}

Result<std::int64_t> StoreClient::num_keys(Timeout timeout) {
    const Deadline deadline = in(timeout);
    if (auto sent = send({Operation::num_keys, {}, {}, 0}, deadline); !sent) return sent.error();
    const Result<std::uint64_t> count = receive_number(8, deadline);
    if (!count) return count.error();
    return static_cast<std::int64_t>(*count);
}

Result<std::optional<std::string>> StoreClient::queue_pop(const std::string& key, Timeout timeout) {
    const Deadline deadline = in(timeout);
    const Request request{Operation::queue_pop, {wire_key(key)}, {}, 0};
    if (auto sent = send(request, deadline); !sent) return sent.error();
    const Result<std::uint64_t> length = receive_number(8, deadline);
    if (!length) return length.error();
    if (*length == 0) return std::optional<std::string>();
    Result<std::string> front = receive_text(deadline);
    if (!front) return front.error();
    return std::optional<std::string>(std::move(*front));
}

Result<> StoreClient::send(const Request& request, Deadline deadline) {
    if (!broken_.empty()) return said(ErrorCode::closed, "not usable any more since: " + broken_);
    const Result<> sent = socket_.send(encode(request), deadline);
    if (sent) return {};
    return fail(sent.error().code(),
                std::string(to_string(request.operation)) + ": " + sent.error().sentence());
}

Result<> StoreClient::receive(char* into, std::size_t count, Deadline deadline) {
    const Result<> received = socket_.receive(into, count, deadline);
    if (received) return {};
    return fail(received.error().code(), received.error().sentence());
}

Result<std::uint64_t> StoreClient::receive_number(std::size_t bytes, Deadline deadline) {
    unsigned char number[8];
    const Result<> received = receive(reinterpret_cast<char*>(number), bytes, deadline);
    if (!received) return received.error();
    return get_little_endian(number, bytes);
}

Result<std::string> StoreClient::receive_text(Deadline deadline) {
    const Result<std::uint64_t> length = receive_number(8, deadline);
    if (!length) return length.error();
    if (*length > Limits{}.max_value) {
        return fail(ErrorCode::malformed, "a value of " + std::to_string(*length) +
                                              " bytes, over the limit of " +
                                              std::to_string(Limits{}.max_value));
    }
    std::string text;
    while (text.size() < *length) {
        const std::size_t have = text.size();
        text.resize(have + std::min<std::uint64_t>(*length - have, kTrustedLength));
        const Result<> received = receive(text.data() + have, text.size() - have, deadline);
        if (!received) return received.error();
    }
    return text;
}

Error StoreClient::fail(ErrorCode code, const std::string& what) {
    broken_ = what;
    return said(code, what);
}

Error StoreClient::said(ErrorCode code, const std::string& what) const {
    return Error(code, "store at " + address_ + ": " + what);
}

}  // namespace ddprun::store
