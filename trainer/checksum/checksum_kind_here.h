// The functions of ChecksumKind, compiled as the file is that includes this.
#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "trainer/checksum/checksum_kinds.h"

namespace ddprun::trainer {
namespace {

XXH3_state_t* state_at(void* state) { return static_cast<XXH3_state_t*>(state); }

const ChecksumKind kChecksumHere{
    [] {
        XXH3_state_t* state = XXH3_createState();
        XXH3_64bits_reset(state);
        return static_cast<void*>(state);
    },
    [](void* state) { XXH3_freeState(state_at(state)); },
    [](void* state, const void* bytes, size_t count) {
        XXH3_64bits_update(state_at(state), bytes, count);
    },
    [](const void* state) -> uint64_t {
        return XXH3_64bits_digest(static_cast<const XXH3_state_t*>(state));
    },
    [](const void* bytes, size_t count) -> uint64_t { return XXH3_64bits(bytes, count); }};

}  // namespace
}  // namespace ddprun::trainer
