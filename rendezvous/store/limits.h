// What clients may do to the memory of the worker store, and how much of it is used.
//
// Members of a job are trusted with its work, not with each other's lives: a worker that runs wild
// loses its connection and nobody else notices. Every limit is an option of the command line whose
// name stands beside it, and whoever passes one reads it in the log. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"

namespace ddprun::store {

struct Limits {
    // At once. torch 1.13 and 2.0 keep two for each worker.
    std::uint64_t max_connections = 100'000;  // --store-max-connections
    // Lengths are looked at when they are read, before anything is allocated for them.
    std::uint64_t max_key = 64 << 10;                    // --store-max-key
    std::uint64_t max_value = std::uint64_t{1} << 30;    // --store-max-value; also grown by APPEND
    std::uint64_t max_keys = 1 << 20;                    // --store-max-keys, of one request
    std::uint64_t max_request = std::uint64_t{2} << 30;  // --store-max-request, keys and values
    // Replies that a connection has not taken. The values of one request's replies may pass it, for
    // they are shared with the store; whatever would come on top of that closes the connection.
    std::uint64_t max_queued = 256 << 20;  // --store-max-queued
    // Of all keys, values, queues, waits and requests under way together. Counts what they bring
    // and an estimate of what the tables add.
    std::uint64_t max_memory = std::uint64_t{8} << 30;  // --store-max-memory
};

// The sentence of whoever passes a limit, e.g. over_limit("SET with a key of 70000 bytes", 65536,
// "--store-max-key").
Error over_limit(const std::string& what, std::uint64_t limit, const char* option);

// Bytes in use against Limits::max_memory. Owned by the KeyValues; what counts itself into it must
// not outlive them.
struct Memory {
    std::uint64_t limit = 0;
    std::uint64_t used = 0;
    // Of earlier requests, for the next one of any connection; small, and not counted.
    std::string spare_key{};
    std::string spare_value{};

    bool has_room_for(std::uint64_t bytes) const { return bytes <= limit && used <= limit - bytes; }
};

// "SET" and so on, refused because the store is full.
Error no_room(const std::string& who, const Memory& memory);

}  // namespace ddprun::store
