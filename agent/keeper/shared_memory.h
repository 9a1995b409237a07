// What the processes of a generation leave behind in shared memory, and its removal when they are
// gone. Shell; keeper process, or ddprun in its place; never waits.
//
// Removed is only what cannot be meant to outlive them; a name that the program chose stays, for it
// may be a snapshot in memory:
//
//     torch_PID_…  pym-PID-…   of PyTorch and Python, whose process was one of the generation
//     nccl-XXXXXX              of NCCL, whose creator has it open for as long as it lives
//     System V, without a key  created by a process of the generation, and attached to by none
//
// The first two only when nobody has them open any more, in whichever container: the kernel says so
// by granting a write lease. What is not of this user, is older than this object, or leaves a
// doubt, stays. What Python's shared_memory makes has no owner in its name; its janitor knows
// (janitor.h).
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <map>
#include <set>
#include <string>

namespace ddprun::agent {

class SharedMemory {
  public:
    explicit SharedMemory(std::string folder = "/dev/shm");

    // A process of the generation, living or dead.
    void belongs(pid_t pid) { pids_.insert(pid); }
    // Whether there are tensors that may be the generation's, of a process that nobody remembers: it
    // died before the others. Only PyTorch's own janitor knows.
    bool tensors_of_unknown() const;
    // Nothing of the generation lives any more. Begins anew for the next one.
    void remove();

  private:
    bool may_be_ours(const struct stat& status) const;
    void remove_object(const std::string& name) const;
    void remove_segments() const;

    std::string folder_;
    time_t since_;
    std::set<pid_t> pids_;
};

}  // namespace ddprun::agent
