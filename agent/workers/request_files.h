// The files by which ddprun asks the workers of this node for something: the stop file and the
// snapshot file. There is one of each for all workers, in the folder of the first one. A worker
// finds their names in DDPRUN_STOP_FILE and DDPRUN_SNAPSHOT_FILE.
//
// They appear in one step, and whatever lies under the name is replaced (careful_open.h). They are
// written on the file thread, since the file system may hang.
//
// Thread: the loop's. Owner: the workers of one generation.
#pragma once

#include <functional>
#include <string>

#include "agent/parts/snapshot_hint.h"
#include "agent/parts/stop_policy.h"
#include "base/error.h"
#include "base/loop/file_thread.h"

namespace ddprun::agent {

class RequestFiles {
  public:
    // `folder` may be empty: then there are none. `files` must outlive this object.
    RequestFiles(FileThread& files, std::string folder)
        : files_(files), folder_(std::move(folder)) {}

    std::string stop_file() const;
    std::string snapshot_file() const;

    // Calls `done` when the file is there, or has not been written in half a second: the workers
    // are stopped all the same.
    void stop(const StopHint& hint, std::function<void()> done);
    // Calls `failed` if it cannot be written.
    void ask_snapshot(const SnapshotHint& hint, std::function<void(const Error&)> failed);

  private:
    FileThread& files_;
    std::string folder_;
};

}  // namespace ddprun::agent
