// Where the files of one generation's workers lie; attempt_names.h says what they are called.
//
// Each ddprun has a folder of its own in the log folder, each generation one in that: nothing is
// ever written over. Without a log folder, and where it cannot be used, a temporary folder has the
// error files; it goes with this object (temporary_folder.h). Where TMPDIR is not set it lies in
// memory: on a disk the folders of 64 workers take longer than their start. All work is done on the
// file thread, for a log folder may lie on a file system that hangs. Thread: the loop's.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/loop/file_thread.h"
#include "base/system/unique_fd.h"
#include "proto/ids.h"

namespace ddprun::agent {

// Which files are asked for; bits: 1 stdout, 2 stderr.
struct WantedFiles {
    std::vector<int> streams;  // of each worker
    int filtered = 0;
    int first_local_rank = 0;  // of these workers
    bool any() const;
};

// Where a temporary folder may be made, in this order.
std::vector<std::string> temporary_parents();

struct AttemptFiles {
    struct Worker {
        std::string folder;   // empty: there is none
        UniqueFd streams[2];  // of those asked for; none where it could not be made
    };
    std::vector<Worker> workers;
    UniqueFd filtered[2];
    std::string folder;            // of the generation
    std::string base;              // of all generations, where they stay
    std::string temporary;         // what goes with the AttemptFolder, if that was needed
    std::optional<Error> problem;  // the first: unavailable, naming the path
};

class AttemptFolder {
  public:
    using Done = std::function<void(AttemptFiles)>;

    // `log_dir` may be empty.
    AttemptFolder(FileThread& files, std::string log_dir, std::string run_id);
    ~AttemptFolder();
    AttemptFolder(const AttemptFolder&) = delete;
    AttemptFolder& operator=(const AttemptFolder&) = delete;

    // Makes the folders and opens the files of a generation.
    void make(Generation generation, WantedFiles wanted, Done done);
    // Whether the files outlive the job.
    bool stays() const { return stays_; }
    // Where those of all generations lie, if they stay and once there are some; else empty.
    const std::string& base() const { return *base_; }
    // The temporary folder, once it is made.
    const std::string& temporary() const { return *temporary_; }

  private:
    struct Maker;
    FileThread& files_;
    const bool stays_;
    bool first_ = true;             // nothing was made yet
    std::shared_ptr<Maker> maker_;  // the file thread's alone
    std::shared_ptr<std::string> base_ = std::make_shared<std::string>();
    std::shared_ptr<std::string> temporary_ = std::make_shared<std::string>();
};

}  // namespace ddprun::agent
