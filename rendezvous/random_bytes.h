// Random bytes of the kernel, for nonces and secrets.
#pragma once

#include <sys/random.h>

#include <string>

#include "proto/error.h"

namespace ddprun::rendezvous {

inline std::string random_bytes(std::size_t size) {
    std::string bytes(size, '\0');
    DDPRUN_CHECK(size <= 256 && ::getrandom(bytes.data(), size, 0) == static_cast<ssize_t>(size),
                 "the kernel gives up to 256 random bytes at once");
    return bytes;
}

}  // namespace ddprun::rendezvous
