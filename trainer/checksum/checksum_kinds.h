// XXH3 as it was compiled for one kind of processor. The numbers are the same with all of them.
//
// It includes nothing of C++: a template that was compiled for AVX2 must not end up in other files.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace ddprun::trainer {

struct ChecksumKind {
    void* (*make)();  // an XXH3_state_t, begun
    void (*free)(void* state);
    void (*add)(void* state, const void* bytes, size_t count);
    uint64_t (*number)(const void* state);
    uint64_t (*whole)(const void* bytes, size_t count);
};

const ChecksumKind& checksum_for_any();
const ChecksumKind& checksum_for_avx2();

}  // namespace ddprun::trainer
