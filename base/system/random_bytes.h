// Random bytes of the kernel, for nonces and secrets; a random number, for incarnations and seeds.
#pragma once

#include <sys/random.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "base/error.h"

namespace ddprun {

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

// By which a ledger is known: never 0.
inline std::uint64_t random_mark() { return random_number() | 1; }

}  // namespace ddprun
