// The tables of the wire format: the fields of each operation, and its number in each dialect.
// Decoder and encoder know no more about operations than these tables. Pure.
#pragma once

#include <cstddef>
#include <string_view>

#include "store/protocol/operation.h"

namespace ddprun::store {

// The name of an operation, and its fields after the code:
//
//   m  magic number, u32           k  key             K  counted list of keys
//   n  nonce, u32                  v  value           P  counted list of pairs (key, value)
//   i  integer, i64
struct Shape {
    const char* name;
    std::string_view fields;
};

// In the order of Operation.
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

// Code → operation in torch 1.13 and 2.0, and in 2.1. In later versions the code is the Operation
// itself.
inline constexpr Operation kCodes113[] = {
    Operation::set,      Operation::compare_set, Operation::get,
    Operation::add,      Operation::check,       Operation::wait,
    Operation::num_keys, Operation::watch_key,   Operation::delete_key};
inline constexpr Operation kCodes21[] = {
    Operation::set,    Operation::compare_set, Operation::get,       Operation::add,
    Operation::check,  Operation::wait,        Operation::num_keys,  Operation::delete_key,
    Operation::append, Operation::multi_get,   Operation::multi_set, Operation::cancel_wait};

}  // namespace ddprun::store
