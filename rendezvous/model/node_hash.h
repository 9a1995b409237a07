// The hash of a node, for the tables that each Beat looks into. The names of a cluster's hosts
// differ in their last letters only, so finding one among ten thousand by their order takes longer.
// Pure.
#pragma once

#include <functional>
#include <string>

#include "rendezvous/model/model.h"

template <>
struct std::hash<ddprun::rendezvous::NodeId> {
    std::size_t operator()(const ddprun::rendezvous::NodeId& node) const {
        return std::hash<std::string>()(node.name) ^
               std::hash<ddprun::Incarnation>()(node.incarnation);
    }
};
