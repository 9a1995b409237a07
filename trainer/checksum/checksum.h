// The checksum of snapshots: XXH3-64, as 16 hexadecimal digits or as a number.
//
// Pure, any thread (a Checksum: one).
// Source: xxHash's specification of XXH3.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ddprun::trainer {

// Of bytes that come in pieces.
class Checksum {
  public:
    Checksum();
    ~Checksum();
    Checksum(const Checksum&) = delete;
    Checksum& operator=(const Checksum&) = delete;

    void add(std::span<const std::byte> bytes);
    std::string text() const;

  private:
    void* state_;  // XXH3_state_t, whose header stays in the source
};

std::string checksum_of(std::span<const std::byte> bytes);
std::uint64_t hash_of(std::span<const std::byte> bytes);  // the same as a number

}  // namespace ddprun::trainer
