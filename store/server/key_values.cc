// What each request does to the store.
#include "store/server/key_values.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "store/server/counted_text.h"

namespace ddprun::store {

namespace {

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
    const auto answer = [&replies](Reply reply) { replies.push_back(std::move(reply)); };
    switch (request.operation) {
        case Operation::ping:
            return answer(nonce_reply(from, request.number));
        case Operation::set:
            return store(request.keys[0], std::move(request.values[0]), replies);
        case Operation::compare_set:
            return compare_set(from, request, replies);
        case Operation::get:
            return answer(value_reply(from, values_.find(request.keys[0])));
        case Operation::multi_set:
            // One key after the other: a client that waits for the first may be woken before the
            // last is stored.
            for (std::size_t i = 0; i < request.keys.size(); ++i)
                store(request.keys[i], std::move(request.values[i]), replies);
            return;
        case Operation::check:
            return answer(
                status_reply(from, all_present(request.keys) ? Status::ready : Status::not_ready));
        case Operation::wait:
            return wait(from, request.keys, replies);
        case Operation::cancel_wait:
            // The answer is the same whether or not there was a wait. The client can then tell
            // where it stands.
            waits_.drop(from);
            return answer(status_reply(from, Status::wait_canceled));
        case Operation::num_keys:
            return answer(number_reply(from, static_cast<std::int64_t>(values_.size())));
        case Operation::delete_key:
            return delete_key(from, request.keys[0], replies);
        case Operation::queue_push:
            return queue_push(request, replies);
        case Operation::queue_pop:
            return queue_pop(from, request.keys[0], replies);
        case Operation::queue_len:
            return answer(
                number_reply(from, static_cast<std::int64_t>(queues_.length(request.keys[0]))));
        case Operation::watch_key:
            watches_.add(from, request.keys[0]);
            return answer({from, std::string(1, static_cast<char>(kWatchRegistered)), nullptr});
        default:  // VALIDATE, which has no reply
            return;
    }
}

// Whether the store has room for the request, checked before anything is changed. Reading is always
// allowed, so that workers can go on. A key counts twice, because a wait keeps it in two tables.
Result<> KeyValues::look_for_room(const Request& request) const {
    if (!may_add(request.operation)) return {};
    std::uint64_t bytes = 0;
    for (const std::string& key : request.keys) bytes += 2 * key.size() + Values::kEntryItself;
    for (const std::string& value : request.values) bytes += value.size();
    if (memory_.has_room_for(bytes)) return count_new_keys(request);
    return no_room(
        std::string(to_string(request.operation)) + " with " + std::to_string(bytes) + " bytes",
        memory_);
}

// Many keys are slow for everybody: LIST_KEYS looks at all of them. The keys themselves are looked
// up only near the limit.
Result<> KeyValues::count_new_keys(const Request& request) const {
    if (request.operation == Operation::wait || request.operation == Operation::watch_key)
        return {};  // they make none
    const std::uint64_t here = values_.size() + queues_.size();
    if (here + request.keys.size() <= limits_.max_total_keys) return {};
    const bool pushes = request.operation == Operation::queue_push;
    const auto more =
        std::count_if(request.keys.begin(), request.keys.end(), [&](const std::string& key) {
            return pushes ? queues_.length(key) == 0 : !values_.contains(key);
        });
    const std::uint64_t after = here + static_cast<std::uint64_t>(more);
    if (more == 0 || after <= limits_.max_total_keys) return {};
    return over_limit(std::string(to_string(request.operation)) + " would make " +
                          std::to_string(after) + " keys in the store",
                      limits_.max_total_keys, "--store-max-total-keys");
}

void KeyValues::closed(ConnectionId connection) {
    waits_.drop(connection);
    watches_.drop(connection);
    listings_.drop(connection);
}

// Compares and sets. It wakes waiting clients if and only if the key exists afterwards. (Of
// PyTorch's servers one never wakes here; the other one does even if the key still does not exist.)
void KeyValues::compare_set(ConnectionId from, Request& request, Replies& replies) {
    const std::string& key = request.keys[0];
    std::string& expected = request.values[0];
    std::string& desired = request.values[1];
    const SharedValue current = values_.find(key);
    const bool matches = current ? *current == expected : expected.empty();
    if (matches) {
        store(key, std::move(desired), replies);
        replies.push_back(value_reply(from, values_.find(key)));
    } else if (current) {
        replies.push_back(value_reply(from, current));
    } else {
        // The key is missing although the client expected a value. It gets its expectation back.
        // Clients know this rule and depend on it.
        replies.push_back(value_reply(from, counted(std::move(expected), memory_)));
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
    std::string& more = request.values[0];
    if (!values_.contains(key)) {
        store(key, std::move(more), replies);
        return {};
    }
    // The limit of a value holds for what APPEND makes, too. Otherwise many small requests could
    // pass it.
    const std::uint64_t size = values_.find(key)->size() + more.size();
    if (size > limits_.max_value) {
        return over_limit("APPEND to a value of " + std::to_string(size) + " bytes",
                          limits_.max_value, "--store-max-value");
    }
    change(key, replies, [&] { values_.append(key, more); });
    wake(key, replies);  // a barrier on this key may be waiting
    return {};
}

void KeyValues::delete_key(ConnectionId from, const std::string& key, Replies& replies) {
    const bool exists = values_.contains(key);
    if (exists) change(key, replies, [&] { values_.remove(key); });
    replies.push_back(number_reply(from, exists ? 1 : 0));
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

// An element wakes one waiting client, the first one; the others still have nothing to fetch.
void KeyValues::queue_push(Request& request, Replies& replies) {
    const std::string& key = request.keys[0];
    queues_.push(key, std::move(request.values[0]));
    if (const auto connection = waits_.arrived_for_one(key)) {
        replies.push_back(status_reply(*connection, Status::stop_waiting));
    }
}

// Never waits. The reply is the length before, and the first element if there was one.
void KeyValues::queue_pop(ConnectionId from, const std::string& key, Replies& replies) {
    replies.push_back(number_reply(from, static_cast<std::int64_t>(queues_.length(key))));
    if (const SharedValue first = queues_.pop(key)) replies.push_back(value_reply(from, first));
}

// Answers a missing key with an empty value: only a race asks for one, and closing the connection
// would end a worker. The size of the reply is limited, because a short request can name the same
// value many times.
Result<> KeyValues::multi_get(ConnectionId from, const Request& request, Replies& replies) {
    const std::size_t before = replies.size();
    std::uint64_t bytes = 0;
    for (const std::string& key : request.keys) {
        replies.push_back(value_reply(from, values_.find(key)));
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

Result<> KeyValues::list_keys(ConnectionId from, Replies& replies) {
    auto list = listings_.turn(from);
    if (!list) return list.error();
    if (*list) replies.push_back(std::move(**list));
    return {};
}

// Possible only for text that somebody has SET under the key of a counter.
Result<std::int64_t> KeyValues::counter(const Request& request) const {
    const SharedValue text = values_.find(request.keys[0]);
    std::int64_t number = 0;
    if (!text || parse_counter(*text, number)) return number;
    return Error(ErrorCode::malformed, std::string(to_string(request.operation)) + " on key '" +
                                           request.keys[0].substr(0, 200) +
                                           "', whose value is no 64-bit number");
}

// A queue counts as a key here, so that clients can wait for an element. It does not for GET.
bool KeyValues::present(const std::string& key) const {
    return values_.contains(key) || queues_.length(key) > 0;
}

bool KeyValues::all_present(const std::vector<std::string>& keys) const {
    return std::all_of(keys.begin(), keys.end(), [this](const auto& key) { return present(key); });
}

// Does `step`, which changes the value of a key, and tells those who watch the key. They get both
// values: what is held here does not change in place (values.h).
template <typename Step>
void KeyValues::change(const std::string& key, Replies& replies, const Step& step) {
    if (!watches_.any(key)) return step();
    const SharedValue before = values_.find(key);
    step();
    watches_.changed(key, before, values_.find(key), replies);
}

void KeyValues::put(const std::string& key, std::string&& value, Replies& replies) {
    change(key, replies, [&] { values_.put(key, std::move(value)); });
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
