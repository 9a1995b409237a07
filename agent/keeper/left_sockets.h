// The socket files that libraries make for a worker, and leave behind when it is killed:
//
//     pymp-XXXXXXXX/…          Python's multiprocessing: loaders that send by descriptor, managers
//     torch-shm-dir-XXXXXX/…   PyTorch's torch_shm_manager
//
// Removed are those of this user that were made since the job began and that no process has bound
// any more: nobody can ever meet anybody there. With the manager's goes its folder, if nothing else
// is in it. Python's stays: whose it is cannot be known, and a process that lives, perhaps of
// another job, makes it only once. What a program has named itself stays, as in shared memory
// (shared_memory.h). May hang with the file system: for the file thread, behind the folders of the
// next generation, and for the keeper when all else is done.
#pragma once

#include <ctime>
#include <string>
#include <vector>

namespace ddprun::agent {

class LeftSockets {
  public:
    // Begins now. By default looks where Python and PyTorch make their temporary files.
    LeftSockets();
    explicit LeftSockets(std::vector<std::string> folders);

    void remove() const;

  private:
    std::vector<std::string> folders_;
    std::time_t since_;
};

}  // namespace ddprun::agent
