// Snapshots in a folder: what makes one whole or not there, which is the newest valid one, and
// agreement on it.
//
// A snapshot is one or several files of tensors and, written last, a manifest that names them with
// their checksums. Files are written by one process (save) or by all ranks (snapshot_writer.h); all
// ranks load. Which one is loaded is decided once: rank 0 verifies the candidates newest first,
// records what it chose from (see snapshot_name.h), and tells the others through the store, so that
// ranks never resume from different steps. The content does not depend on the world size. The
// folder must be on a file system that all nodes share.
//
// Others may be at work in it: a generation that is fenced and does not know yet, or another job by
// mistake. The folder is that of the loader which came last: who saves looks before it writes
// whether another has come since, and fails then (closed); and again between the manifest and the
// removal of older ones. A loader takes its turn before it looks at what is there. So of two one
// knows of the other: either the manifest is among those that the loader chooses from, or its writer
// removes nothing.
//
// Blocking; one thread. Warnings (a damaged snapshot that is skipped) go to the callback, which may
// be empty.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "trainer/snapshot/durable_file.h"
#include "trainer/snapshot/page_buffer.h"
#include "trainer/snapshot/safetensors.h"
#include "trainer/snapshot/snapshot_manifest.h"
#include "trainer/snapshot/snapshot_name.h"
#include "trainer/worker/context.h"
#include "trainer/worker/store.h"

namespace ddprun::trainer {

using Warn = std::function<void(const std::string&)>;

// A snapshot in memory, verified. Movable, not copyable: the tensors are views into its bytes.
struct Snapshot {
    Manifest manifest;
    Safetensors content;

    Snapshot() = default;
    Snapshot(Snapshot&&) = default;
    Snapshot& operator=(Snapshot&&) = default;

    std::vector<PageBuffer> files;
};

// Copies a tensor's bytes into host memory: memcpy, or from a GPU.
using CopyTensor = std::function<Result<void>(std::byte* to, const TensorView& tensor)>;

// The whole file of these tensors, head and data, as it will lie on disk. Errors: usage,
// unavailable.
Result<void> lay_out(const std::vector<TensorView>& tensors, PageBuffer& file,
                     const CopyTensor& copy);

class SnapshotFolder {
  public:
    // Makes the folder where it is missing. `keep` newest ones are kept (at least 1).
    static Result<SnapshotFolder> open(const Context& context, std::string folder, std::size_t keep,
                                       Warn warn);

    // Writes tensors, then manifest; then lets the surplus go. Errors: unavailable, usage, closed. On
    // an error the older ones stay, one of the same step too. `file_bytes`: see plan_files.
    Result<void> save(std::int64_t step, const std::vector<TensorView>& tensors,
                      const Metadata& metadata, std::uint64_t file_bytes = kFileBytes);
    static constexpr std::uint64_t kFileBytes = std::uint64_t{64} << 20;

    // The two halves of it, for several writers: each file by one of them, then the manifest by
    // one, which lets the surplus go too.
    Result<SnapshotFile> write_file(const std::string& name, const PageBuffer& content) const;
    Result<void> commit(const SnapshotName& name, std::vector<SnapshotFile> files,
                        const Metadata& metadata);

    // Before the first file, by the one who commits: which edition to write.
    Result<int> begin(const SnapshotName& name);

    // A file of a snapshot that nobody will commit any more. It stays if a manifest names it after
    // all (one whose folder could not be synced).
    void discard(const SnapshotName& name, const std::string& file) const;
    Generation generation() const { return generation_; }

    // Rank 0's half of resuming: takes the folder over, records and removes what a dead writer left,
    // gives the newest valid one; nothing where there is none. Errors: unavailable; malformed, when
    // there are some and none is valid; closed, when another loader came in the meantime.
    Result<std::optional<Snapshot>> load_newest();

    // The one of this name, verified. Errors: not_found, malformed, unavailable.
    Result<Snapshot> load(const SnapshotName& name) const;

  private:
    SnapshotFolder(const Context& context, std::string folder, std::size_t keep, Warn warn);

    std::string path(const std::string& file) const { return folder_ + "/" + file; }
    Result<void> take_over();
    Result<void> take_turn();
    ResumeRecord record_before(const std::vector<std::string>& files) const;
    bool admits(const SnapshotName& name, const ResumeRecord& last) const;
    Result<void> check_turn() const;
    Error reason_of(const Error& failure) const;
    void tidy_up(const std::vector<std::string>& files) const;
    void let_go(const Manifest& saved);
    void remove(const SnapshotName& name, const std::vector<std::string>& files) const;

    std::string run_id_;
    Generation generation_;
    std::string folder_;
    std::size_t keep_;
    Warn warn_;
    std::int64_t turn_ = 0;             // 0: not taken yet
    std::vector<SnapshotName> usable_;  // of those before us, and our own
};

// All ranks call it once, before training: the same snapshot on each, or none on any.
// Errors: those of load, of the store, and unavailable when this rank cannot see what rank 0 chose.
Result<std::optional<Snapshot>> resume(const Context& context, Store& store, SnapshotFolder& folder,
                                       std::chrono::milliseconds timeout);

}  // namespace ddprun::trainer
