// What an operator asks of a running job (proto/control.proto), and what the leader answers. Plain
// values.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "proto/ids.h"

namespace ddprun::rendezvous {

// Stop all workers as planned, and end the job.
struct StopJob {
    bool operator==(const StopJob&) const = default;
};
// End this generation and make the next one. It uses up no restart. A request that is repeated
// names the same generation, so it does nothing when a newer one has followed.
struct RestartGeneration {
    Generation generation = kNoGeneration;
    bool operator==(const RestartGeneration&) const = default;
};
// Run no worker on this host any more, for the rest of the job.
struct DrainNode {
    std::string node;  // of a task, too ("n1/2"): its whole host is meant
    bool operator==(const DrainNode&) const = default;
};
using OperatorAction = std::variant<StopJob, RestartGeneration, DrainNode>;

enum class OperatorAnswer {
    done,          // it has been decided
    already,       // nothing was left to do
    again,         // not at this moment: ask again
    refused,       // it cannot be done in this job
    unknown_node,  // the job has no such node
};

}  // namespace ddprun::rendezvous
