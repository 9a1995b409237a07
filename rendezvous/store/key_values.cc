// What each request does to the store.
#include "rendezvous/store/key_values.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "rendezvous/store/counted_text.h"

namespace ddprun::store {

namespace {

// An estimate of what a table entry costs besides its key.
constexpr std::uint64_t kEntryItself = 256;
// An estimate for a queue; std::deque allocates its first block early.
constexpr std::uint64_t kQueueItself = 1024;

// Requests that can make the store larger. WAIT, BARRIER and WATCH_KEY are among them: they are
// noted in tables, and a client could send any number.
bool may_add(Operation operation) {
    switch (operation) {
        case Operation::set:
        case Operation::compare_set:
        case Operation::add:
        case Operation::append:
        case Operation::multi_set:
        case Operation::queue_push:
        case Operation::wait:
        case Operation::barrier:
        case Operation::watch_key:
            return true;
        default:
            return false;
    }
}

// A pointer to the text that keeps the whole CountedText alive, and so counted.
SharedValue shared(const std::shared_ptr<CountedText>& value) { return {value, &value->text()}; }

// Reads a counter as C's strtoll does, because PyTorch's servers use it: blanks in front and
// anything behind the number are ignored.
bool parse_counter(std::string_view text, std::int64_t& number) {
    const std::size_t start = text.find_first_not_of(" \t\n\v\f\r");
    if (start == std::string_view::npos) return false;
    text.remove_prefix(start);
    if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
    return std::from_chars(text.data(), text.data() + text.size(), number).ec == std::errc{};
}

// Wraps around on overflow, as PyTorch's servers do in practice. Signed overflow would be undefined
// here, so it is done unsigned.
std::int64_t sum(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

}  // namespace

Result<> KeyValues::handle(ConnectionId from, Request&& request, Replies& replies) {
    if (const Result<> room = look_for_room(request); !room) return room;
    switch (request.operation) {
        case Operation::add:
            return add(from, request, replies);
        case Operation::append:
            return append(request, replies);
        case Operation::barrier:
            return barrier(from, request, replies);
        case Operation::multi_get:
            return multi_get(from, request, replies);
        case Operation::list_keys:
            return list_keys(from, replies);
        default:
            serve(from, request, replies);
            return {};
    }
}

// The requests that cannot fail.
void KeyValues::serve(ConnectionId from, Request& request, Replies& replies) {
    switch (request.operation) {
        case Operation::ping:
            replies.push_back(nonce_reply(from, request.number));
            break;
        case Operation::set:
            store(request.keys[0], std::move(request.values[0]), replies);
            break;
        case Operation::compare_set:
            compare_set(from, request, replies);
            break;
        case Operation::get:
            replies.push_back(value_reply(from, find(request.keys[0])));
            break;
        case Operation::multi_set:
            // One key after the other: a client that waits for the first may be woken before the
            // last is stored.
            for (std::size_t i = 0; i < request.keys.size(); ++i) {
                store(request.keys[i], std::move(request.values[i]), replies);
            }
            break;
        case Operation::check:
            replies.push_back(
                status_reply(from, all_present(request.keys) ? Status::ready : Status::not_ready));
            break;
        case Operation::wait:
            wait(from, request.keys, replies);
            break;
        case Operation::cancel_wait:
            // The answer is the same whether or not there was a wait. The client can then tell
            // where it stands.
            waits_.drop(from);
            replies.push_back(status_reply(from, Status::wait_canceled));
            break;
        case Operation::num_keys:
            replies.push_back(number_reply(from, std::ssize(values_)));
            break;
        case Operation::delete_key:
            delete_key(from, request.keys[0], replies);
            break;
        case Operation::queue_push:
            queue_push(request, replies);
            break;
        case Operation::queue_pop:
            queue_pop(from, request.keys[0], replies);
            break;
        case Operation::queue_len:
            replies.push_back(
                number_reply(from, static_cast<std::int64_t>(queue_length(request.keys[0]))));
            break;
        case Operation::watch_key:
            watches_.add(from, request.keys[0]);
            replies.push_back({from, std::string(1, static_cast<char>(kWatchRegistered)), nullptr});
            break;
        default:  // VALIDATE, which has no reply
            break;
    }
}

// Whether the store has room for the request, checked before anything is changed. Reading is always
// allowed, so that workers can go on. A key counts twice, because a wait keeps it in two tables.
Result<> KeyValues::look_for_room(const Request& request) const {
    if (!may_add(request.operation)) return {};
    std::uint64_t bytes = 0;
    for (const std::string& key : request.keys) bytes += 2 * key.size() + kEntryItself;
    for (const std::string& value : request.values) bytes += value.size();
    if (memory_.has_room_for(bytes)) return {};
    return no_room(
        std::string(to_string(request.operation)) + " with " + std::to_string(bytes) + " bytes",
        memory_);
}

void KeyValues::closed(ConnectionId connection) {
    waits_.drop(connection);
    watches_.drop(connection);
}

// Compares and sets. It wakes waiting clients if and only if the key exists afterwards. (Of
// PyTorch's servers one never wakes here; the other one does even if the key still does not exist.)
void KeyValues::compare_set(ConnectionId from, Request& request, Replies& replies) {
    const std::string& key = request.keys[0];
    std::string& expected = request.values[0];
    std::string& desired = request.values[1];
    const SharedValue current = find(key);
    const bool matches = current ? *current == expected : expected.empty();
    if (matches) {
        store(key, std::move(desired), replies);
        replies.push_back(value_reply(from, find(key)));
    } else if (current) {
        replies.push_back(value_reply(from, current));
    } else {
        // The key is missing although the client expected a value. It gets its expectation back.
        // Clients know this rule and depend on it.
        replies.push_back(
            value_reply(from, shared(std::make_shared<CountedText>(std::move(expected), memory_))));
    }
}

// A counter is kept as decimal text, so that GET and COMPARE_SET work on it, too.
Result<> KeyValues::add(ConnectionId from, const Request& request, Replies& replies) {
    const Result<std::int64_t> before = counter(request);
    if (!before) return before.error();
    const std::int64_t after = sum(*before, request.number);
    replies.push_back(number_reply(from, after));
    store(request.keys[0], std::to_string(after), replies);
    return {};
}

Result<> KeyValues::append(Request& request, Replies& replies) {
    const std::string& key = request.keys[0];
    const auto found = values_.find(key);
    if (found == values_.end()) {
        store(key, std::move(request.values[0]), replies);
        return {};
    }
    StoredValue& value = found->second;
    // The limit of a value holds for what APPEND makes, too. Otherwise many small requests could
    // pass it.
    const std::uint64_t size = value->text().size() + request.values[0].size();
    if (size > limits_.max_value) {
        return over_limit("APPEND to a value of " + std::to_string(size) + " bytes",
                          limits_.max_value, "--store-max-value");
    }
    if (value.use_count() == 1 && !watches_.any(key)) {
        value->append(request.values[0]);
    } else {
        // Somebody else holds the old value: a reply on its way, or a watch. It must not change
        // under them, so a new value takes its place.
        put(key, value->text() + request.values[0], replies);
    }
    wake(key, replies);  // a barrier on this key may be waiting
    return {};
}

void KeyValues::delete_key(ConnectionId from, const std::string& key, Replies& replies) {
    const auto removed = values_.extract(key);
    if (!removed.empty()) {
        memory_.used -= key.size() + kEntryItself;
        watches_.changed(key, shared(removed.mapped()), nullptr, replies);
    }
    replies.push_back(number_reply(from, removed.empty() ? 0 : 1));
}

// Waits for the keys that are missing now. A connection has one wait at a time: a client of torch
// 1.13 gives up a wait silently and then starts another.
void KeyValues::wait(ConnectionId from, std::vector<std::string>& keys, Replies& replies) {
    waits_.drop(from);
    std::erase_if(keys, [this](const std::string& key) { return present(key); });
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    if (keys.empty()) {
        replies.push_back(status_reply(from, Status::stop_waiting));
    } else {
        waits_.start(from, std::move(keys));
    }
}

// Counts an arrival. Neither the counter nor an arrival is ever taken back, so a key serves one
// barrier. Only the last arrival wakes the others. That the first one creates the key does not wake
// a WAIT on it.
Result<> KeyValues::barrier(ConnectionId from, const Request& request, Replies& replies) {
    const Result<std::int64_t> before = counter(request);
    if (!before) return before.error();
    const std::int64_t arrived = sum(*before, 1);
    waits_.drop(from);
    put(request.keys[0], std::to_string(arrived), replies);
    if (arrived < request.number) {
        waits_.start(from, {request.keys[0]});
        return {};
    }
    wake(request.keys[0], replies);
    replies.push_back(status_reply(from, Status::stop_waiting));
    return {};
}

void KeyValues::queue_push(Request& request, Replies& replies) {
    const std::string& key = request.keys[0];
    // An element wakes one waiting client, the first one; the others still have nothing to fetch.
    const auto [queue, is_new] = queues_.try_emplace(key);
    if (is_new) memory_.used += key.size() + kQueueItself;
    queue->second.push_back(
        shared(std::make_shared<CountedText>(std::move(request.values[0]), memory_)));
    if (const auto connection = waits_.arrived_for_one(key)) {
        replies.push_back(status_reply(*connection, Status::stop_waiting));
    }
}

// Never waits. The reply is the length before, and the first element if there was one.
void KeyValues::queue_pop(ConnectionId from, const std::string& key, Replies& replies) {
    replies.push_back(number_reply(from, static_cast<std::int64_t>(queue_length(key))));
    const auto queue = queues_.find(key);
    if (queue == queues_.end()) return;
    replies.push_back(value_reply(from, queue->second.front()));
    queue->second.pop_front();
    if (!queue->second.empty()) return;
    memory_.used -= key.size() + kQueueItself;
    queues_.erase(queue);
}

std::size_t KeyValues::queue_length(const std::string& key) const {
    const auto queue = queues_.find(key);
    return queue == queues_.end() ? 0 : queue->second.size();
}

// Answers a missing key with an empty value: only a race asks for one, and closing the connection
// would end a worker. The size of the reply is limited, because a short request can name the same
// value many times.
Result<> KeyValues::multi_get(ConnectionId from, const Request& request, Replies& replies) {
    const std::size_t before = replies.size();
    std::uint64_t bytes = 0;
    for (const std::string& key : request.keys) {
        replies.push_back(value_reply(from, find(key)));
        bytes += replies.back().bytes.size();
        // Large values are shared and do not count (Limits::max_queued).
        if (bytes <= limits_.max_queued) continue;
        replies.resize(before);
        return over_limit("MULTI_GET of " + std::to_string(request.keys.size()) +
                              " keys with a reply of more bytes than may be queued",
                          limits_.max_queued, "--store-max-queued");
    }
    return {};
}

Result<> KeyValues::list_keys(ConnectionId from, Replies& replies) const {
    // The size is checked before the reply is built.
    std::vector<std::string_view> keys;
    keys.reserve(values_.size());
    std::uint64_t bytes = 0;
    for (const auto& [key, value] : values_) {
        keys.push_back(key);
        bytes += 8 + key.size();
    }
    if (bytes > limits_.max_queued) {
        return over_limit("LIST_KEYS with a reply of " + std::to_string(bytes) + " bytes",
                          limits_.max_queued, "--store-max-queued");
    }
    std::sort(keys.begin(), keys.end());  // the map's own order would differ from run to run
    Reply reply = number_reply(from, std::ssize(keys));
    reply.bytes.reserve(8 + bytes);
    for (const std::string_view key : keys) put_text(reply.bytes, key);
    replies.push_back(std::move(reply));
    return {};
}

// Possible only for text that somebody has SET under the key of a counter.
Result<std::int64_t> KeyValues::counter(const Request& request) const {
    const SharedValue text = find(request.keys[0]);
    std::int64_t number = 0;
    if (!text || parse_counter(*text, number)) return number;
    return Error(ErrorCode::malformed, std::string(to_string(request.operation)) + " on key '" +
                                           request.keys[0].substr(0, 200) +
                                           "', whose value is no 64-bit number");
}

SharedValue KeyValues::find(const std::string& key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? nullptr : shared(found->second);
}

// A queue counts as a key here, so that clients can wait for an element. It does not for GET.
bool KeyValues::present(const std::string& key) const {
    return values_.contains(key) || queues_.contains(key);
}

bool KeyValues::all_present(const std::vector<std::string>& keys) const {
    return std::all_of(keys.begin(), keys.end(), [this](const auto& key) { return present(key); });
}

// Reuses the value object where nobody else holds it: the usual case, without an allocation.
void KeyValues::put(const std::string& key, std::string&& value, Replies& replies) {
    const auto [entry, is_new] = values_.try_emplace(key);
    if (is_new) memory_.used += key.size() + kEntryItself;
    if (!is_new && entry->second.use_count() == 1 && !watches_.any(key)) {
        entry->second->assign(std::move(value));
        return;
    }
    // Others still read the old value, so a new object takes its place.
    const StoredValue before =
        std::exchange(entry->second, std::make_shared<CountedText>(std::move(value), memory_));
    watches_.changed(key, before ? shared(before) : nullptr, shared(entry->second), replies);
}

void KeyValues::store(const std::string& key, std::string&& value, Replies& replies) {
    put(key, std::move(value), replies);
    wake(key, replies);
}

void KeyValues::wake(const std::string& key, Replies& replies) {
    for (const ConnectionId connection : waits_.arrived(key)) {
        replies.push_back(status_reply(connection, Status::stop_waiting));
    }
}

}  // namespace ddprun::store
