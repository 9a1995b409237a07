// Finds out more about a worker's death than its wait status and its error file tell: whether the
// kernel killed it for lack of memory, and where its core dump is.
//
// Thread: the loop's. Owner: the worker set, one object for each generation, because it counts
// kills from its construction on.
#pragma once

#include <set>
#include <string>

#include "agent/death/death.h"
#include "base/system/unique_fd.h"

namespace ddprun::agent {

class DeathWitness {
  public:
    DeathWitness();

    // Adds to the facts of a worker that has failed. It reads only files of the kernel, which do
    // not hang.
    void look(DeathFacts& facts);

  private:
    void look_for_memory_kill(DeathFacts& facts);
    void read_kernel_log();
    long counted() const;

    std::string count_file_;   // file with the count of kills; empty: not available
    long counted_before_ = 0;  // kills that are explained already
    UniqueFd kernel_log_;      // -1: not readable, or its pids are not ours
    std::set<long> killed_;    // pids from the log that no worker has claimed yet
};

}  // namespace ddprun::agent
