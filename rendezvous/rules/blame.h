// Nodes that fail again and again: who was the first cause of a generation's end twice within five
// generations is blamed for the rest of the job (design 4.2). A spare takes its place where there
// is one, and it is named for the next submission. Hosts, not processes: a new ddprun on the same
// one has the same hardware, and so has another task of it. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rendezvous/model/model.h"
#include "rendezvous/rules/rank_assignment.h"

namespace ddprun::rendezvous {

// The generation has ended because of that node: remembered, and perhaps blamed for it.
Blame with_cause(Blame blame, const FirstCause& cause);

// The candidates without blamed nodes, as long as the world of at most `most` nodes grows no
// smaller by it.
std::vector<Candidate> without_blamed(std::vector<Candidate> candidates, const Blame& blame,
                                      int most);

// Of one that is newly blamed: "gpu07 was the first cause of the end of generations 2 and 4; a
// spare takes its place (--blame=off leaves it)". Without a spare it says that.
std::string blame_sentence(const Blame& blame, const std::string& node, bool replaced);

// "for the next submission: sbatch --exclude=gpu07,gpu09".
std::string exclude_option(const Blame& blame);

}  // namespace ddprun::rendezvous
