// Random numbers from the kernel: bytes for nonces and secrets, numbers for incarnations and seeds.
#pragma once

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "base/error.h"
#include "base/system/unique_fd.h"

namespace ddprun {

// At most 256 bytes: up to this size getrandom() always returns all of them and is not interrupted
// (getrandom(2)). A sandbox may deny the call; /dev/urandom has the same bytes.
inline std::string random_bytes(std::size_t size) {
    std::string bytes(size, '\0');
    const auto wanted = static_cast<ssize_t>(size);
    DDPRUN_CHECK(size <= 256, "the kernel gives up to 256 random bytes at once");
    if (::getrandom(bytes.data(), size, 0) == wanted) return bytes;
    const UniqueFd device(::open("/dev/urandom", O_RDONLY | O_CLOEXEC));
    DDPRUN_CHECK(device && ::read(device.get(), bytes.data(), size) == wanted,
                 "the kernel gives random bytes, by getrandom() or /dev/urandom");
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
