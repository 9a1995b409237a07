// The processes of a ddprun that was killed together with its keeper, by a user or the kernel:
// nobody has ended them. The next ddprun of this user on this host does, if it finds the folder of
// the dead one with the record of its origin (temporary_folder.h).
//
// A variable in an environment proves little: a worker may have submitted another job or called
// at(1), and both carry their environment along. So a process counts as an orphan only if
//
//     its DDPRUN_STOP_FILE lies in the folder of the dead ddprun,
//     boot, PID namespace, cgroup and SLURM_JOB_ID are the same as those of the dead ddprun,
//     it belongs to this user, and this process does not descend from it.
//
// Thread: any, but not the loop: reading what a hanging process has in memory may hang.
#pragma once

#include <optional>
#include <string>

#include "keeper/killing/killing.h"

namespace ddprun::agent {

// Where the workers of a ddprun come from.
struct Origin {
    std::string folder;  // absolute: their stop file lies below it
    std::string boot, pid_namespace, cgroup, slurm_job_id;
    bool operator==(const Origin&) const = default;
};

Origin origin_here(std::string folder);
std::string to_json(const Origin& origin);
// Nothing: the text is no origin.
std::optional<Origin> read_origin(const std::string& text);

// Kills what is left of it, and returns how much that was. Nothing: this process stems from that
// ddprun itself, so nothing was touched.
std::optional<LeftRunning> kill_orphans(const Origin& origin);

}  // namespace ddprun::agent
