// Hosts that fail again and again. A host that was the first cause of a generation's end twice
// within five generations is blamed for the rest of the job (PROTOCOL.md, rule 21). A spare takes
// its place if there is one, and the log names the host for the next submission. Blame is on hosts,
// not on processes: a new ddprun or another task on the same host has the same hardware. Pure
// functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rendezvous/model/model.h"
#include "rendezvous/rules/rank_assignment.h"

namespace ddprun::rendezvous {

// Records that the generation ended because of this node, and blames its host if that is the second
// time.
Blame with_cause(Blame blame, const FirstCause& cause);

// The candidates without blamed nodes. Blamed nodes are left out only while more than `most`
// candidates remain, so blame never makes the world smaller.
std::vector<Candidate> without_blamed(std::vector<Candidate> candidates, const Blame& blame,
                                      int most);

// The log line for a newly blamed host: "gpu07 caused the end of generations 2 and 4; a spare
// replaces it (--blame=off keeps it)". Without a spare it says so.
std::string blame_sentence(const Blame& blame, const std::string& node, bool replaced);

// "for the next submission: sbatch --exclude=gpu07,gpu09".
std::string exclude_option(const Blame& blame);

}  // namespace ddprun::rendezvous
