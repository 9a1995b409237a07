// What workers read in the file that DDPRUN_SNAPSHOT_FILE names, when an operator asks for a
// snapshot (slurm/README.md, "The snapshot file"). Pure.
#pragma once

#include <string>

#include "rendezvous/model/messages.h"

namespace ddprun::agent {

struct SnapshotHint {
    Generation generation;
    rendezvous::SnapshotAsked asked;
    bool operator==(const SnapshotHint&) const = default;
};

// JSON in one line. `now`: of day, since 1970.
std::string to_json(const SnapshotHint& hint, Duration now);

}  // namespace ddprun::agent
