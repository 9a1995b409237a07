// FolderLock: a running job holds its snapshot folder, so that a second job is refused. Without it
// two jobs with one folder would take it from each other at each restart.
//
// It is a lock of the kernel on the file `in-use` of the folder (an open file description lock,
// which NFS version 4 and most parallel file systems have). It ends with the process, however that
// ends, and the file stays. Where a file system has no such locks, or nothing can be written,
// nothing is locked; the turns (snapshot_turn.cc) then still protect the snapshots.
//
// The job itself takes the folder over all the same, in its next generation or on another host: its
// predecessor may be a process that is stopped, on a host that the job has lost. So may the same
// process that opens it twice.
//
// Movable. Any thread.
#pragma once

#include <string>

#include "base/error.h"
#include "base/system/unique_fd.h"
#include "proto/ids.h"

namespace ddprun::trainer {

class FolderLock {
  public:
    // Holds nothing.
    FolderLock() = default;
    // Errors: refused, if another job holds the folder; the sentence names it.
    static Result<FolderLock> take(const std::string& folder, const std::string& run_id,
                                   Generation generation);
    explicit operator bool() const { return static_cast<bool>(file_); }

  private:
    explicit FolderLock(UniqueFd file) : file_(std::move(file)) {}

    UniqueFd file_;
};

}  // namespace ddprun::trainer
