// Makes the request of each call, and reads its answer.
#include "store/client/tasks.h"

namespace ddprun::store::tasks {
namespace {

using Op = Operation;

// How an answer is read, by the type of the result. The reader has checked that the fields are
// there.
void nothing(Answer) {}
bool any(Answer answer) { return answer.numbers.at(0) > 0; }
std::int64_t number(Answer answer) { return answer.numbers.at(0); }
std::string text(Answer answer) { return std::move(answer.texts.at(0)); }
Keys texts(Answer answer) { return std::move(answer.texts); }

bool is_ready(Answer answer) {
    return answer.numbers.at(0) == static_cast<std::int64_t>(Status::ready);
}

std::optional<std::string> text_if_any(Answer answer) {
    if (answer.texts.empty()) return std::nullopt;
    return std::move(answer.texts.front());
}

// Keys without the "/" in front belong to PyTorch itself and are left out.
Keys users_keys(Answer answer) {
    Keys keys;
    for (std::string& key : answer.texts)
        if (key.starts_with('/')) keys.push_back(key.substr(1));
    return keys;
}

// A request with one key that does not wait.
Task simple(Op operation, std::string key, std::vector<std::string> values = {},
            std::int64_t number = 0) {
    return {{operation, {std::move(key)}, std::move(values), number}, false};
}

}  // namespace

TypedTask<void> set(std::string key, std::string value) {
    return {simple(Op::set, std::move(key), {std::move(value)}), nothing};
}

TypedTask<void> append(std::string key, std::string data) {
    return {simple(Op::append, std::move(key), {std::move(data)}), nothing};
}

TypedTask<void> multi_set(Pairs pairs) {
    Task task{{Op::multi_set, {}, {}, 0}, false};
    for (auto& [key, value] : pairs) {
        task.request.keys.push_back(std::move(key));
        task.request.values.push_back(std::move(value));
    }
    return {std::move(task), nothing};
}

TypedTask<void> queue_push(std::string key, std::string data) {
    return {simple(Op::queue_push, std::move(key), {std::move(data)}), nothing};
}

TypedTask<std::string> get(std::string key) {
    return {{{Op::get, {std::move(key)}, {}, 0}, true}, text};
}

TypedTask<Keys> multi_get(Keys keys) {
    return {{{Op::multi_get, std::move(keys), {}, 0}, true}, texts};
}

TypedTask<void> wait(Keys keys) { return {{{Op::wait, std::move(keys), {}, 0}, true}, nothing}; }

TypedTask<std::string> queue_pop(std::string key) {
    return {{{Op::queue_pop, {std::move(key)}, {}, 0}, true}, text};
}

TypedTask<void> barrier(std::string key, std::int64_t world_size) {
    return {{{Op::barrier, {std::move(key)}, {}, world_size}, true}, nothing};
}

TypedTask<bool> check(Keys keys) {
    return {{{Op::check, std::move(keys), {}, 0}, false}, is_ready};
}

TypedTask<std::string> compare_set(std::string key, std::string expected, std::string desired) {
    return {simple(Op::compare_set, std::move(key), {std::move(expected), std::move(desired)}),
            text};
}

TypedTask<std::int64_t> add(std::string key, std::int64_t delta) {
    return {simple(Op::add, std::move(key), {}, delta), number};
}

TypedTask<bool> delete_key(std::string key) {
    return {simple(Op::delete_key, std::move(key)), any};
}

TypedTask<std::int64_t> num_keys() { return {{{Op::num_keys, {}, {}, 0}, false}, number}; }

TypedTask<std::optional<std::string>> try_queue_pop(std::string key) {
    return {simple(Op::queue_pop, std::move(key)), text_if_any};
}

TypedTask<std::int64_t> queue_len(std::string key) {
    return {simple(Op::queue_len, std::move(key)), number};
}

TypedTask<Keys> list_keys() { return {{{Op::list_keys, {}, {}, 0}, false}, users_keys}; }

}  // namespace ddprun::store::tasks
