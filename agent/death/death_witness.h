// What a node can find out about a worker's death beyond its wait status and its error file: the
// kernel's counts and log of processes killed for lack of memory, and where its core dump lies.
// Shell; the loop's thread; owned by the worker set, one for each generation, since the counts are
// taken from its making on.
#pragma once

#include <set>
#include <string>

#include "agent/death/death.h"
#include "base/system/unique_fd.h"

namespace ddprun::agent {

class DeathWitness {
  public:
    DeathWitness();

    // Adds to the facts of a worker that has failed. Reads files of the kernel's own, which do not
    // hang.
    void look(DeathFacts& facts);

  private:
    void look_for_memory_kill(DeathFacts& facts);
    void read_kernel_log();
    long counted() const;

    std::string count_file_;  // empty: none here
    long counted_before_ = 0;
    UniqueFd kernel_log_;  // -1: we may not read it, or its process numbers are not ours
    std::set<long> killed_;
};

}  // namespace ddprun::agent
