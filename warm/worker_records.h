// Reads the records of the workers' imports (import_record.h): of the newest generation that has
// imported something.
//
// Thread: the loop's; the files are read on the file thread. Owner: WarmStarts.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/loop/file_thread.h"

namespace ddprun::agent::warm {

class WorkerRecords {
  public:
    explicit WorkerRecords(FileThread& files) : files_(files) {}

    // A generation begins, whose workers write these files. Those of the one before are removed.
    void begin(std::vector<std::string> files);
    // `done` gets whether there is an import that was not known at the last call.
    void read(std::function<void(bool grew)> done);
    // One text for each worker that has imported something.
    const std::vector<std::string>& texts() const { return texts_; }

  private:
    FileThread& files_;
    std::vector<std::string> paths_, texts_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ddprun::agent::warm
