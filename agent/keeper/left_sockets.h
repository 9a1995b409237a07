// Removes socket files that libraries make for a worker and leave behind when it is killed:
//
//     pymp-XXXXXXXX/…          Python's multiprocessing: loaders that send descriptors, managers
//     torch-shm-dir-XXXXXX/…   PyTorch's torch_shm_manager
//
// It removes only socket files that belong to this user, are newer than the start of the job, and
// are bound by no process any more: nobody can use them again. The manager's folder goes, too, if
// it is empty then. Python's folder stays: its owner is unknown, and a living process, perhaps of
// another job, creates its folder only once. Files under names that a program chose itself stay, as
// in shared_memory.h.
//
// Blocking: the file system may hang. Call it on the file thread, after the folders of the next
// generation are made, or in the keeper when everything else is done.
#pragma once

#include <ctime>
#include <string>
#include <vector>

namespace ddprun::agent {

class LeftSockets {
  public:
    // The job begins now. By default it looks in the folders that Python and PyTorch use for
    // temporary files.
    LeftSockets();
    explicit LeftSockets(std::vector<std::string> folders);

    // Removes what is left now. Errors are ignored: a file that stays does no harm.
    void remove() const;

  private:
    std::vector<std::string> folders_;
    std::time_t since_;
};

}  // namespace ddprun::agent
