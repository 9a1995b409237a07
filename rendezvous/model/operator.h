// What an operator asks of a running job (proto/control.proto), and what the leader answers. Plain
// values.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "proto/ids.h"
#include "rendezvous/model/model.h"

namespace ddprun::rendezvous {

// Stop all workers as planned, and end the job.
struct StopJob {
    // First the workers write a snapshot and go on training; the stop begins when it is reported.
    bool after_snapshot = false;
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
// These limits hold from the next decision on, for the rest of the job; what has no value stays as
// it is. The generation that runs goes on as it is.
struct SetLimits {
    OperatorLimits limits;  // here each may stand alone
    bool operator==(const SetLimits&) const = default;
};
// The workers of the generation that runs are asked for a snapshot, and go on training.
struct AskSnapshot {
    bool operator==(const AskSnapshot&) const = default;
};
using OperatorAction = std::variant<StopJob, RestartGeneration, DrainNode, SetLimits, AskSnapshot>;

enum class OperatorAnswer {
    done,          // it has been decided
    already,       // nothing was left to do
    again,         // not at this moment: ask again
    refused,       // it cannot be done in this job
    unknown_node,  // the job has no such node
};

}  // namespace ddprun::rendezvous
