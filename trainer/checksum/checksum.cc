// Chooses the functions for this processor.
#include "trainer/checksum/checksum.h"

#include "base/hexadecimal.h"
#include "trainer/checksum/checksum_kinds.h"

namespace ddprun::trainer {
namespace {

const ChecksumKind& kind() {
#ifdef DDPRUN_CHECKSUM_AVX2
    static const ChecksumKind& best =
        __builtin_cpu_supports("avx2") ? checksum_for_avx2() : checksum_for_any();
    return best;
#else
    return checksum_for_any();
#endif
}

}  // namespace

Checksum::Checksum() : state_(kind().make()) {}

Checksum::~Checksum() { kind().free(state_); }

void Checksum::add(std::span<const std::byte> bytes) {
    if (!bytes.empty()) kind().add(state_, bytes.data(), bytes.size());
}

std::string Checksum::text() const { return hexadecimal(kind().number(state_)); }

std::uint64_t hash_of(std::span<const std::byte> bytes) {
    return kind().whole(bytes.data(), bytes.size());
}

std::string checksum_of(std::span<const std::byte> bytes) { return hexadecimal(hash_of(bytes)); }

}  // namespace ddprun::trainer
