// Removes what the processes of a generation left in shared memory, when they are gone. Used by the
// keeper process, or by ddprun in its place. It never waits.
//
// It removes only objects that cannot be meant to outlive their process. An object under a name
// that the program chose stays, because it may be a snapshot in memory. Removed are:
//
//     torch_PID_…  pym-PID-…   of PyTorch and Python, if the process belonged to the generation
//     nccl-XXXXXX              of NCCL, whose creator keeps it open for its whole life
//     System V, without a key  if a process of the generation created it and nobody is attached
//
// Objects of the first two kinds are removed only when no process in any container has them open.
// The kernel proves this by granting a write lease on the file. A tensor on its way to another
// process is open in none, though, and a container that shares /dev/shm may have a process of the
// same number: then it stays. In a PID namespace of our own no other can be seen, so tensors are
// left to PyTorch's janitor there. An object stays if it belongs to
// another user, is older than this object, or leaves any doubt. Objects of Python's shared_memory
// have no owner in their names; Python's janitor removes them (janitor.h).
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <map>
#include <set>
#include <string>

namespace ddprun::agent {

// The one that the kernel has begun with.
bool is_first_pid_namespace();

class SharedMemory {
  public:
    // `sees_all_pids`: the processes of all other PID namespaces can be seen from here.
    explicit SharedMemory(std::string folder = "/dev/shm",
                          bool sees_all_pids = is_first_pid_namespace());

    // A process of the generation, living or dead.
    void belongs(pid_t pid) { pids_.insert(pid); }
    // Whether there are tensors that may belong to the generation, but nobody remembers their
    // process, because it died before the others, or its number does not prove it. Only PyTorch's
    // own janitor knows them.
    bool tensors_of_unknown() const;
    // Call when no process of the generation lives any more. Clears the records for the next
    // generation. `all_well`: no process failed or was killed. Then NCCL has removed its objects
    // itself, and those of others, however many they are, are not looked at.
    void remove(bool all_well = false);

  private:
    bool may_be_ours(const struct stat& status) const;
    void remove_object(const std::string& name) const;
    void remove_segments() const;

    std::string folder_;
    bool sees_all_pids_;
    time_t since_;
    std::set<pid_t> pids_;
};

}  // namespace ddprun::agent
