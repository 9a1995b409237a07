// Whose a connection to the workers' store is, as the kernel of its host says: the word of a member
// (Owners in agent_link.proto), and what the store's door decides by. Plain data.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ddprun {

// The numbers are sent: never renumber.
enum class Whose : int {
    ours = 0,      // the user of the ddprun that says it, or root
    other = 1,     // another user
    gone = 2,      // nobody has it open any more
    not_here = 3,  // not in this network namespace: a container, or translated addresses
    unknown = 4,   // this kernel never tells
    failed = 5,    // the kernel could not say it this time: no memory, no descriptors
};

struct SocketOwner {
    Whose whose = Whose::unknown;
    std::uint32_t user = 0;  // if it is another one
    bool operator==(const SocketOwner&) const = default;
};

inline constexpr std::size_t kSocketsAsked = 256;  // in one question to a member

}  // namespace ddprun
