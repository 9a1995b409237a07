// The limits on what clients may do to the memory of the worker store, and how much of it is in
// use.
//
// The workers of a job trust each other's work but may have bugs. A worker that sends garbage or
// too much loses its connection, and no other worker is affected. Every limit is an option of the
// command line, whose name stands beside it. A client that passes a limit causes a log line with
// that name. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"

namespace ddprun::store {

// Sizes are in bytes.
struct Limits {
    // Connections at the same time. torch 1.13 and 2.0 open two for each worker.
    std::uint64_t max_connections = 100'000;  // --store-max-connections
    // Lengths are checked when they are read, before anything is allocated for them.
    std::uint64_t max_key = 64 << 10;                  // --store-max-key
    std::uint64_t max_value = std::uint64_t{1} << 30;  // --store-max-value; also grown by APPEND
    std::uint64_t max_keys = 1 << 20;                  // --store-max-keys, of one request
    // Keys and queues in the store at the same time.
    std::uint64_t max_total_keys = 1 << 24;              // --store-max-total-keys
    std::uint64_t max_request = std::uint64_t{2} << 30;  // --store-max-request, keys and values
    // Replies that a connection has not taken yet. The large values in the replies to one request
    // may pass this limit, because they are shared with the store. A request on top of that closes
    // the connection.
    std::uint64_t max_queued = 256 << 20;  // --store-max-queued
    // All keys, values, queues, waits and unfinished requests together, with an estimate of what
    // the tables need.
    std::uint64_t max_memory = std::uint64_t{8} << 30;  // --store-max-memory
};

// An estimate of what a key takes in the two tables that it stands in, in bytes.
inline std::uint64_t cost_of_key(const std::string& key) { return 2 * key.size() + 256; }

// The error for a passed limit: over_limit("SET with a key of 70000 bytes", 65536,
// "--store-max-key").
Error over_limit(const std::string& what, std::uint64_t limit, const char* option);

// Bytes in use, against Limits::max_memory. Owned by KeyValues. Whatever counts itself in must not
// outlive KeyValues.
struct Memory {
    std::uint64_t limit = 0;
    std::uint64_t used = 0;
    // Buffers of earlier requests, for the next request of any connection. They are small and not
    // counted.
    std::string spare_key{};
    std::string spare_value{};

    // Written without a sum that could overflow.
    bool has_room_for(std::uint64_t bytes) const { return bytes <= limit && used <= limit - bytes; }
};

// The error for a request ("SET with 70 bytes") that is refused because the store is full.
Error no_room(const std::string& who, const Memory& memory);

}  // namespace ddprun::store
