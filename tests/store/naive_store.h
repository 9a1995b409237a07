// The worker store in its simplest form: no indexes, no sharing; every question is answered by
// looking at everything. KeyValues must give the same answers, byte for byte (model_test.cc, and
// the fuzz target store_machine). Read it as a short description of what each request does.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "store/protocol/protocol.h"

namespace ddprun::store::test {

// The bytes that each connection is sent, in order.
using Answers = std::map<std::uint64_t, std::string>;

// It knows one limit only, that of a value. SideBySide keeps the others out of reach.
class NaiveStore {
  public:
    explicit NaiveStore(std::uint64_t max_value) : max_value_(max_value) {}

    // Nothing: the request is refused, and the connection has to be closed.
    std::optional<Answers> ask(std::uint64_t from, const Request& request) {
        answers_.clear();
        if (!serve(from, request)) return std::nullopt;
        return answers_;
    }

    // The connection is gone. Its wait and watches go with it; what it stored stays.
    void closed(std::uint64_t connection) {
        drop_wait(connection);
        std::erase_if(watches_, [&](const auto& watch) { return watch.first == connection; });
    }

    std::vector<std::string> keys() const {
        std::vector<std::string> keys;
        for (const auto& [key, value] : values_) keys.push_back(key);
        return keys;
    }
    const std::map<std::string, std::vector<std::string>>& queues() const { return queues_; }

  private:
    // A connection and the keys that it still waits for. A key that arrived once is not missing
    // again, even if it is deleted.
    struct Wait {
        std::uint64_t connection;
        std::set<std::string> missing;
    };

    bool serve(std::uint64_t from, const Request& request) {
        const std::string key = request.keys.empty() ? "" : request.keys[0];
        switch (request.operation) {
            case Operation::validate:
                return true;
            case Operation::ping:
                put_u32(answers_[from], static_cast<std::uint32_t>(request.number));
                return true;
            case Operation::set:
                store(key, request.values[0]);
                return true;
            case Operation::compare_set:
                compare_set(from, key, request.values[0], request.values[1]);
                return true;
            // A missing key gives an empty text.
            case Operation::get:
            case Operation::multi_get:
                for (const std::string& each : request.keys)
                    put_text(answers_[from], values_.contains(each) ? values_[each] : "");
                return true;
            case Operation::add:
                return count(key, request.number, [&](std::int64_t sum) {
                    put_u64(answers_[from], static_cast<std::uint64_t>(sum));
                    store(key, std::to_string(sum));
                });
            // put() and not store(): an arrival that is not the last must not wake a WAIT on the
            // same key.
            case Operation::barrier:
                return count(key, 1, [&](std::int64_t arrived) {
                    drop_wait(from);
                    put(key, std::to_string(arrived));
                    if (arrived < request.number) return waits_.push_back({from, {key}});
                    wake(key);
                    answers_[from] += '\0';
                });
            case Operation::check:
                answers_[from] += missing(request.keys).empty() ? '\0' : '\1';
                return true;
            // A new wait replaces the old one: 1.13 gives up a wait without a word.
            case Operation::wait:
                drop_wait(from);
                if (missing(request.keys).empty())
                    answers_[from] += '\0';
                else
                    waits_.push_back({from, missing(request.keys)});
                return true;
            // Answered even without a wait, so that a client can tell where it stands in the
            // stream.
            case Operation::cancel_wait:
                drop_wait(from);
                answers_[from] += '\1';
                return true;
            case Operation::num_keys:
                put_u64(answers_[from], values_.size());
                return true;
            case Operation::delete_key:
                if (values_.contains(key)) changed(key, values_[key], std::nullopt);
                put_u64(answers_[from], values_.erase(key));
                return true;
            // The only request besides ADD and BARRIER that can be refused here.
            case Operation::append: {
                const std::string before = values_.contains(key) ? values_[key] : "";
                if (before.size() + request.values[0].size() > max_value_) return false;
                store(key, before + request.values[0]);
                return true;
            }
            case Operation::multi_set:
                for (std::size_t i = 0; i < request.keys.size(); ++i)
                    store(request.keys[i], request.values[i]);
                return true;
            // One element can serve one waiting client.
            case Operation::queue_push:
                queues_[key].push_back(request.values[0]);
                wake_one(key);
                return true;
            // The length before, and the first element if there was one.
            case Operation::queue_pop:
                put_u64(answers_[from], queues_[key].size());
                if (!queues_[key].empty()) {
                    put_text(answers_[from], queues_[key].front());
                    queues_[key].erase(queues_[key].begin());
                }
                return true;
            case Operation::queue_len:
                put_u64(answers_[from], queues_[key].size());
                return true;
            // std::map is sorted, and so is the real answer.
            case Operation::list_keys:
                put_u64(answers_[from], values_.size());
                for (const auto& [each, value] : values_) put_text(answers_[from], each);
                return true;
            case Operation::watch_key:
                watches_.insert({from, key});
                answers_[from] += '\3';
                return true;
        }
        return false;
    }

    // A missing key matches an empty expectation. If nothing was stored, the client gets the value
    // that is there, or its own expectation if there is none.
    void compare_set(std::uint64_t from, const std::string& key, const std::string& expected,
                     const std::string& desired) {
        const bool is_there = values_.contains(key);
        if ((is_there ? values_[key] : "") == expected) store(key, desired);
        put_text(answers_[from], values_.contains(key) ? values_[key] : expected);
    }

    // The counter under `key` plus `by`, passed to `then`. False: the text is no number, as strtoll
    // sees it. An overflow wraps around.
    template <class Then>
    bool count(const std::string& key, std::int64_t by, Then then) {
        std::int64_t before = 0;
        if (values_.contains(key)) {
            const char* text = values_[key].c_str();
            char* end = nullptr;
            errno = 0;
            before = std::strtoll(text, &end, 10);
            if (end == text || errno == ERANGE) return false;
        }
        then(static_cast<std::int64_t>(static_cast<std::uint64_t>(before) +
                                       static_cast<std::uint64_t>(by)));
        return true;
    }

    // A queue with an element counts as a key here.
    std::set<std::string> missing(const std::vector<std::string>& keys) {
        std::set<std::string> missing;
        for (const std::string& key : keys)
            if (!values_.contains(key) && queues_[key].empty()) missing.insert(key);
        return missing;
    }

    // Stores without waking anybody.
    void put(const std::string& key, const std::string& value) {
        std::optional<std::string> before;
        if (values_.contains(key)) before = values_[key];
        values_[key] = value;
        changed(key, before, value);
    }

    // Stores, and wakes the connections that wait for the key.
    void store(const std::string& key, const std::string& value) {
        put(key, value);
        wake(key);
    }

    void wake(const std::string& key) {
        for (Wait& wait : waits_) wait.missing.erase(key);
        release();
    }

    // The first that waits for the key. Others still have nothing to fetch.
    void wake_one(const std::string& key) {
        for (Wait& wait : waits_) {
            if (wait.missing.erase(key) == 0) continue;
            release();
            return;
        }
    }

    // Answers the waits that have ended, in the order in which they began.
    void release() {
        for (const Wait& wait : waits_)
            if (wait.missing.empty()) answers_[wait.connection] += '\0';
        std::erase_if(waits_, [](const Wait& wait) { return wait.missing.empty(); });
    }

    void drop_wait(std::uint64_t connection) {
        std::erase_if(waits_, [&](const Wait& wait) { return wait.connection == connection; });
    }

    // A record to each connection that watches the key: 1 created, 2 deleted, 0 updated.
    void changed(const std::string& key, const std::optional<std::string>& before,
                 const std::optional<std::string>& after) {
        for (const auto& [connection, watched] : watches_) {
            if (watched != key) continue;
            answers_[connection] += !before ? '\1' : !after ? '\2' : '\0';
            for (const std::string& text : {key, before.value_or(""), after.value_or("")})
                put_text(answers_[connection], text);
        }
    }

    std::uint64_t max_value_;
    std::map<std::string, std::string> values_;
    std::map<std::string, std::vector<std::string>> queues_;
    std::vector<Wait> waits_;  // in the order in which they began
    std::set<std::pair<std::uint64_t, std::string>> watches_;
    Answers answers_;
};

}  // namespace ddprun::store::test
