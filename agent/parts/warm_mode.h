// When workers are forked from a server (--warm; warm/warm_policy.h decides). Pure value.
#pragma once

namespace ddprun::agent::warm {

enum class Mode {
    off,
    automatic,  // starts wait for no server
    always,     // starts wait for the server, the first one, too
};

}  // namespace ddprun::agent::warm
