// Removes socket files that libraries make for a worker and leave behind when it is killed:
//
//     pymp-XXXXXXXX/…          Python's multiprocessing: loaders that send descriptors, managers
//     torch-shm-dir-XXXXXX/…   PyTorch's torch_shm_manager
//
// A file is removed only if a process of the job was seen to listen there, and no process has that
// socket any more. Nothing is asked of a socket itself: its owner, perhaps another job in another
// network namespace, would take the connection for one of its own, and CPython's fork server ends
// of one that brings nothing. A file whose owner died unseen stays, and so does one under a name
// that a program chose itself, as in shared_memory.h.
//
// What it costs does not depend on what others have left: no folder is listed.
#pragma once

#include <sys/types.h>

#include <ctime>
#include <map>
#include <string>

namespace ddprun::agent {

class LeftSockets {
  public:
    // The job begins now. `table`: the kernel's list of sockets.
    explicit LeftSockets(std::string table = "/proc/net/unix");

    // Call before processes below `root` get a signal: remembers the sockets of the libraries on
    // which they listen. Thread: any. It never waits for a file system other than /proc.
    void see(pid_t root);

    // Call when none of them lives any more. Errors are ignored: a file that stays does no harm.
    // Blocking: the file system may hang. Call it on the file thread, or in the keeper when
    // everything else is done.
    void remove() const;

  private:
    std::string table_;
    std::time_t since_;
    std::map<ino_t, std::string> seen_;  // number of the socket, its file
};

}  // namespace ddprun::agent
