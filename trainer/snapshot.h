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
// Blocking; one thread. Warnings (a damaged snapshot that is skipped) go to the callback, which may
// be empty.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "proto/error.h"
#include "trainer/context.h"
#include "trainer/durable_file.h"
#include "trainer/page_buffer.h"
#include "trainer/safetensors.h"
#include "trainer/snapshot_manifest.h"
#include "trainer/snapshot_name.h"
#include "trainer/store.h"

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

    // Writes tensors, then manifest; then lets the surplus go. Errors: unavailable, usage. On an
    // error the older ones stay. `file_bytes`: see plan_files.
    Result<void> save(std::int64_t step, const std::vector<TensorView>& tensors,
                      const Metadata& metadata, std::uint64_t file_bytes = kFileBytes);
    static constexpr std::uint64_t kFileBytes = std::uint64_t{64} << 20;

    // The two halves of it, for several writers: each file by one of them, then the manifest by
    // one, which lets the surplus go too.
    Result<SnapshotFile> write_file(const std::string& name, const PageBuffer& content) const;
    Result<void> commit(const SnapshotName& name, std::vector<SnapshotFile> files,
                        const Metadata& metadata);

    // Before the first file: takes away a manifest of this name from an earlier life of the job.
    Result<void> begin(const SnapshotName& name) const;

    // A file of a snapshot that will not be completed.
    void discard(const std::string& file) const { (void)remove_file(path(file)); }
    Generation generation() const { return generation_; }

    // Rank 0's half of resuming: records and removes what a dead writer left, gives the newest
    // valid one, if any.
    Result<std::optional<Snapshot>> load_newest();

    // The one of this name, verified. Errors: not_found, malformed, unavailable.
    Result<Snapshot> load(const SnapshotName& name) const;

  private:
    SnapshotFolder(const Context& context, std::string folder, std::size_t keep, Warn warn);

    std::string path(const std::string& file) const { return folder_ + "/" + file; }
    Result<std::vector<SnapshotName>> names() const;
    Result<void> read_records();
    Result<void> record_choice(const std::vector<SnapshotName>& names);
    void remove_leftovers();
    void let_go();
    void remove(const SnapshotName& name);

    std::string run_id_;
    Generation generation_;
    std::string folder_;
    std::size_t keep_;
    Warn warn_;
    std::vector<ResumeRecord> records_;  // of this run, up to our own generation
};

// All ranks call it once, before training: the same snapshot on each, or none on any.
// Errors: those of load, of the store, and unavailable when this rank cannot see what rank 0 chose.
Result<std::optional<Snapshot>> resume(const Context& context, Store& store, SnapshotFolder& folder,
                                       std::chrono::milliseconds timeout);

}  // namespace ddprun::trainer
