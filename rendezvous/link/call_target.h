// Where a rendezvous may be: one candidate of a node that looks for it. A plain value.
#pragma once

#include <cstdint>
#include <string>

namespace ddprun::rendezvous {

struct CallTarget {
    std::string host;  // name or address
    std::uint16_t port = 0;
    std::string if_unknown = {};  // its address, used if nobody knows the name; may be empty
    // Nobody has said that a service of this job is there. What refuses us may be that of another
    // job, so its refusal ends nothing.
    bool guess = false;
    bool operator==(const CallTarget&) const = default;
};

}  // namespace ddprun::rendezvous
