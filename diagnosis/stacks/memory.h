// The memory of another process, as the readers of this room see it. Pure.
//
// The other process runs on while it is read, and may be broken or hostile. So nothing that comes
// from here is trusted: each reader has limits for what it follows and for how much it reads.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

namespace ddprun::agent {

using Address = std::uint64_t;

class Memory {
  public:
    virtual ~Memory() = default;
    // Copies `size` bytes, all or none. False when they are not there or may not be read.
    virtual bool read(Address from, void* to, std::size_t size) = 0;

    // The value at an address, as this machine writes it.
    template <typename Value>
    std::optional<Value> value(Address from) {
        Value value{};
        if (!read(from, &value, sizeof value)) return std::nullopt;
        return value;
    }
    // A pointer, and 0 both for a null pointer and for one that cannot be read.
    Address pointer(Address from) { return value<Address>(from).value_or(0); }
};

}  // namespace ddprun::agent
