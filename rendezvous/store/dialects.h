// The tables of the wire format: which fields an operation has, and which number it has in which
// dialect. All that decoder and encoder know of the operations. Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "rendezvous/store/protocol.h"

namespace ddprun::store {

// The fields after the code: m magic, n nonce (both u32), i i64, k key, v value, K counted keys, P
// counted pairs of key and value.
struct Shape {
    const char* name;
    std::string_view fields;
};

inline constexpr Shape kShapes[] = {
    {"VALIDATE", "m"},   {"SET", "kv"},     {"COMPARE_SET", "kvv"}, {"GET", "k"},
    {"ADD", "ki"},       {"CHECK", "K"},    {"WAIT", "K"},          {"GETNUMKEYS", ""},
    {"DELETE_KEY", "k"}, {"APPEND", "kv"},  {"MULTI_GET", "K"},     {"MULTI_SET", "P"},
    {"CANCEL_WAIT", ""}, {"PING", "n"},     {"QUEUE_PUSH", "kv"},   {"QUEUE_POP", "k"},
    {"QUEUE_LEN", "k"},  {"LIST_KEYS", ""}, {"BARRIER", "ki"},      {"WATCH_KEY", "k"},
};

inline const Shape& shape_of(Operation operation) {
    return kShapes[static_cast<std::size_t>(operation)];
}

inline constexpr Operation kCodes113[] = {
    Operation::set,      Operation::compare_set, Operation::get,
    Operation::add,      Operation::check,       Operation::wait,
    Operation::num_keys, Operation::watch_key,   Operation::delete_key};
inline constexpr Operation kCodes21[] = {
    Operation::set,    Operation::compare_set, Operation::get,       Operation::add,
    Operation::check,  Operation::wait,        Operation::num_keys,  Operation::delete_key,
    Operation::append, Operation::multi_get,   Operation::multi_set, Operation::cancel_wait};

}  // namespace ddprun::store
