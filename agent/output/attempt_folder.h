// Makes the folders and files of one generation's workers. attempt_names.h has the names.
//
// Each ddprun has its own folder inside the log folder, and each generation has its own inside this
// one, so nothing is ever overwritten. Without a log folder, or if it cannot be used, a temporary
// folder holds the error files (temporary_folder.h). It is removed together with this object, and
// what a generation has there when the next one has its own: its report has been told by then. If
// TMPDIR is not set and there is room, the temporary folder is in memory: on a disk, making the
// folders of 64 workers takes longer than starting the workers.
//
// Thread: the loop's. The work itself runs on the file thread, because a log folder may be on a
// file system that hangs.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/output/temporary_folder.h"
#include "base/error.h"
#include "base/loop/file_thread.h"
#include "base/system/unique_fd.h"
#include "proto/ids.h"

namespace ddprun::agent {

// Which files a generation needs. Bits: 1 stdout, 2 stderr.
struct WantedFiles {
    std::vector<int> streams;  // bits for each worker's own files
    int filtered = 0;          // bits for the files that all workers share
    int first_local_rank = 0;  // local rank of the first worker
    // Whether any file is needed.
    bool any() const;
};

// Folders in which the temporary folder may be made, the best first if all have room.
std::vector<std::string> temporary_parents();
// Where the temporary folder will be if it gets this name: one of these, absolute.
std::vector<std::string> temporary_places(const std::string& name);

// What was made for one generation.
struct AttemptFiles {
    struct Worker {
        std::string folder;   // empty if there is none
        UniqueFd streams[2];  // stdout, stderr; -1 if not wanted or not possible
    };
    std::vector<Worker> workers;
    UniqueFd filtered[2];
    std::string folder;            // of the generation
    std::string base;              // of all generations, if the files stay
    std::string temporary;         // the temporary folder, if one was needed
    std::optional<Error> problem;  // the first one: unavailable; names the path
};

class AttemptFolder {
  public:
    using Done = std::function<void(AttemptFiles)>;

    // For a ddprun that is killed together with its keeper, and for those that were.
    struct Heirs {
        // Of the first temporary folder, known to the keeper; empty: it does not matter.
        std::string name;
        // What the temporary folder says about the processes whose stop file lies below `folder`.
        // On the file thread; may be empty.
        std::function<std::string(const std::string& folder)> origin;
        // Fill a new temporary folder before the workers start. On the file thread; each may be
        // empty.
        std::vector<std::function<void(const std::string& folder)>> furnish;
        // What lies beside the temporary folder. On the loop.
        std::function<void(OthersFolders)> found;
        // The temporary folder has been made, or another one in its place. On the loop.
        std::function<void()> made;
    };

    // `log_dir` is the value of --log-dir; empty if the user gave none.
    AttemptFolder(FileThread& files, std::string log_dir, std::string run_id, Heirs heirs = {});
    ~AttemptFolder();
    AttemptFolder(const AttemptFolder&) = delete;
    AttemptFolder& operator=(const AttemptFolder&) = delete;

    // Makes the folders of a generation and opens its files. `done` runs on the loop.
    void make(Generation generation, WantedFiles wanted, Done done);
    // Makes the temporary folder before the first generation. `done` runs on the loop.
    void prepare(std::function<void()> done);
    // Whether the files stay after the end of the job.
    bool stays() const { return stays_; }
    // The folder of all generations, if the files stay and some exist; else empty.
    const std::string& base() const { return *base_; }
    // The temporary folder; empty until it is made.
    const std::string& temporary() const { return *temporary_; }
    // Shared by all who keep the temporary folder; -1 if there is none.
    int temporary_lock() const { return lock_->get(); }

  private:
    struct Maker;
    void tidy(Generation generation);
    FileThread& files_;
    const bool stays_;
    std::shared_ptr<Maker> maker_;  // used on the file thread only
    std::shared_ptr<std::string> base_ = std::make_shared<std::string>();
    std::shared_ptr<std::string> temporary_ = std::make_shared<std::string>();
    std::shared_ptr<UniqueFd> lock_ = std::make_shared<UniqueFd>();
    std::shared_ptr<Heirs> heirs_;
};

}  // namespace ddprun::agent
