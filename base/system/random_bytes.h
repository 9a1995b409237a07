// Random numbers from the kernel: bytes for nonces and secrets, numbers for incarnations and seeds.
#pragma once

#include <sys/random.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "base/error.h"

namespace ddprun {

// At most 256 bytes: up to this size getrandom() always returns all of them and is not interrupted
// (getrandom(2)).
inline std::string random_bytes(std::size_t size) {
    std::string bytes(size, '\0');
    DDPRUN_CHECK(size <= 256 && ::getrandom(bytes.data(), size, 0) == static_cast<ssize_t>(size),
                 "the kernel gives up to 256 random bytes at once");
    return bytes;
}

inline std::uint64_t random_number() {
    std::uint64_t number = 0;
    const std::string bytes = random_bytes(sizeof number);
    std::memcpy(&number, bytes.data(), sizeof number);
    return number;
}

// A mark identifies one ledger. It is never 0, because 0 means "no mark" in messages.
inline std::uint64_t random_mark() { return random_number() | 1; }

}  // namespace ddprun
