// Where a rendezvous may be: one candidate of a node that looks for it. A plain value.
#pragma once

#include <cstdint>
#include <string>

namespace ddprun::rendezvous {

struct CallTarget {
    std::string host;  // name or address
    std::uint16_t port = 0;
    std::string if_unknown = {};  // its address, used if nobody knows the name; may be empty
    bool operator==(const CallTarget&) const = default;
};

}  // namespace ddprun::rendezvous
