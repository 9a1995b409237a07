// SnapshotFolder: the snapshots (checkpoints) of a job in a folder. It knows how a snapshot is
// either complete or absent, which one is the newest valid one, and how all ranks agree on it.
//
// A snapshot consists of one or several files with tensors and of a manifest. The manifest is
// written last and names the files with their checksums. The files are written by one process
// (save()) or by all ranks (snapshot_writer.h). All ranks load. Rank 0 alone decides which snapshot
// they load: it records from which ones it chooses (snapshot_name.h), and names the candidates, the
// newest first, until all ranks have loaded and verified one. So ranks never resume from different
// steps. The content does not depend on the world size. The folder must be on a file
// system that all nodes share.
//
// Other processes may write into the folder: a process of an older generation that does not know
// yet that it was replaced, or another job by mistake. A loader is a rank 0 that resumes from the
// folder. The folder belongs to the loader that came last. A writer looks for a later loader before
// its first file, before the manifest, and between the manifest and the removal of older snapshots.
// If there is one, it stops with the error `closed`. A loader takes its turn before it lists the
// folder. So one of two things is true: the loader has the new manifest in its list, or the writer
// sees the loader's turn and removes nothing.
//
// Blocking. Thread: one. Warnings (for example about a damaged snapshot that is skipped) go to the
// callback, which may be empty.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "trainer/snapshot/folder/folder_lock.h"
#include "trainer/snapshot/folder/write_plan.h"
#include "trainer/snapshot/format/durable_file.h"
#include "trainer/snapshot/format/page_buffer.h"
#include "trainer/snapshot/format/safetensors.h"
#include "trainer/snapshot/format/snapshot_manifest.h"
#include "trainer/snapshot/format/snapshot_name.h"
#include "trainer/tensors/slice_list.h"
#include "trainer/worker/context.h"
#include "trainer/worker/store.h"

namespace ddprun::trainer {

using Warn = std::function<void(const std::string&)>;

// A verified snapshot in memory. Movable, not copyable: the tensors are views into `files`.
struct Snapshot {
    Manifest manifest;
    Safetensors content;
    bool from_base = false;  // of the base folder, see SnapshotFolder::open()

    Snapshot() = default;
    Snapshot(Snapshot&&) = default;
    Snapshot& operator=(Snapshot&&) = default;

    std::vector<PageBuffer> files;
};

// Copies the bytes of a tensor to host memory: by memcpy, or from a GPU.
using CopyTensor = std::function<Result<void>(std::byte* to, const TensorView& tensor)>;
// The one by memcpy. Does not fail.
Result<void> copy_bytes(std::byte* to, const TensorView& tensor);

// Builds the file of these tensors in memory, header and data, as it will be on disk. Errors: usage
// (a name twice, a wrong size), unavailable (no memory), those of `copy`.
Result<void> lay_out(const std::vector<TensorView>& tensors, PageBuffer& file,
                     const CopyTensor& copy);

// Leaves only these slices in a file of lay_out(), with a header of their own. It becomes shorter,
// and is not copied. Errors: those of parse_safetensors() and safetensors_head().
Result<void> keep_slices(PageBuffer& file, const std::vector<SliceEntry>& slices);

class SnapshotFolder {
  public:
    // Creates the folder if it is missing. After each save the newest `keep` snapshots stay (at
    // least 1), and always the newest one that is known to load: one that was loaded, or that was
    // read back after it was written. `base`: another run's folder, for fine-tuning. As long as the
    // folder has no snapshot of its own, load_newest() and resume() read the newest of `base`.
    // Nothing is ever written to `base`, and it may be read-only.
    static Result<SnapshotFolder> open(const Context& context, std::string folder, std::size_t keep,
                                       Warn warn, std::string base = {});

    // Writes the tensors, then the manifest, and then removes older snapshots. `file_bytes`: see
    // plan_files(). Slices are for a SnapshotWriter. Errors: unavailable, usage, closed; refused,
    // if the folder has a snapshot of more steps that loads: a restart would resume from that one.
    // After an error all older snapshots remain, also one of the same step.
    Result<void> save(std::int64_t step, const std::vector<TensorView>& tensors,
                      const Metadata& metadata, std::uint64_t file_bytes = kFileBytes);
    static constexpr std::uint64_t kFileBytes = std::uint64_t{64} << 20;  // 64 MiB

    // The steps of save(), for several writers. begin() comes first, in the process that will
    // commit. It returns how the files are to be written. Then each process writes its files, and
    // reads them back where the plan says so. commit() looks at all files, writes the manifest and
    // removes older snapshots. After an error nothing is removed.
    Result<WritePlan> begin(const SnapshotName& name);
    Result<SnapshotFile> write_file(const std::string& name, const PageBuffer& content) const;
    Result<void> commit(const SnapshotName& name, std::vector<SnapshotFile> files,
                        const Metadata& metadata, std::vector<Metadata> ranks = {});

    // Writes the index, before commit().
    Result<void> write_index(const std::string& name, const std::string& text) const;

    // Reads a file that was written, and compares size and checksum. Errors: unavailable.
    Result<void> read_back(const SnapshotFile& file) const;
    // Whether a file that was written is there, with all its bytes. Errors: unavailable, if this
    // process does not see it so.
    Result<void> look_at(const SnapshotFile& file) const;

    // Removes a file of a snapshot that will not be committed. The file stays if a manifest names
    // it. That happens if the manifest is in place but the folder could not be synced.
    void discard(const SnapshotName& name, const std::string& file) const;
    Generation generation() const { return generation_; }
    void warn(const std::string& text) const { warn_(text); }
    const std::string& folder() const { return folder_; }

    // Removes all snapshots of more than `step` steps, for a training that goes back to an older
    // one on purpose. Rank 0 calls it before resume(). Takes the folder over. Errors: unavailable,
    // closed.
    Result<void> give_up_after(std::int64_t step);

    // Rank 0's half of resuming. Takes the folder over, records the candidates, removes what a dead
    // writer left, and returns the newest valid snapshot, or the base's; empty if there is none.
    // Where nothing can be written (a full disk, a folder that may only be read) it warns and
    // returns it all the same; save() then tries again.
    // Errors: unavailable; malformed, if there are snapshots but none is valid; not_found, if there
    // is a base without snapshots; refused, if another job that runs has the folder; closed, if
    // another loader came meanwhile.
    Result<std::optional<Snapshot>> load_newest();

    // The first half of load_newest(): takes the folder over and returns the names that it would
    // try, the newest first. Those of the base folder, which it would try if there are none. For
    // resume_into() (load_slices.h), as are the next ones.
    Result<std::vector<SnapshotName>> candidates();
    Result<std::vector<SnapshotName>> base_candidates() const;
    // All ranks have loaded this snapshot.
    void proved(const SnapshotName& name) { proven_ = name; }
    void skip(const SnapshotName& name, bool from_base, const Error& why);
    Error none_readable(std::size_t count) const;
    // Fails with `closed` if another loader has taken the folder since.
    Result<void> check_turn() const;
    const std::string& base() const { return base_; }  // empty: none

    // Loads and verifies the snapshot of this name. Changes nothing in the folder. Errors:
    // not_found, malformed, unavailable.
    Result<Snapshot> load(const SnapshotName& name) const;
    // The same in the base folder.
    Result<Snapshot> load_from_base(const SnapshotName& name) const;

    // The newest valid snapshot of a folder, for programs that only want to look: it changes
    // nothing, and the folder stays with the job that writes there. Errors: as load_newest(), and
    // not_found, if there is none.
    static Result<Snapshot> newest_in(const std::string& folder, Warn warn);

  private:
    SnapshotFolder(const Context& context, std::string folder, std::size_t keep, Warn warn,
                   std::string base);

    static Result<std::vector<SnapshotName>> candidates_in(const std::string& folder,
                                                           const Warn& warn);
    std::string path(const std::string& file) const { return folder_ + "/" + file; }
    // These are in snapshot_turn.cc.
    // The error is that of reading, or `closed`; `to_write`: why nothing can be written.
    Result<void> take_over(Result<void>& to_write);
    Result<void> take_over_to_read();
    Result<void> take_over_to_write();
    Result<void> take_turn();
    Result<void> write_down();
    void remove_older_records(const std::vector<std::string>& files) const;
    ResumeRecord record_before(std::int64_t turn, const std::vector<std::string>& files) const;
    std::vector<SnapshotName> usable_in(const std::vector<std::string>& files,
                                        std::int64_t turn) const;
    bool admits(const SnapshotName& name, const ResumeRecord& last) const;
    Error reason_of(const Error& failure) const;
    // In snapshot_line.cc.
    Result<void> check_order(const SnapshotName& next, const std::vector<SnapshotName>& names);

    void let_go(const Manifest& saved);
    void remove(const SnapshotName& name, const std::vector<std::string>& files) const;

    std::string run_id_;
    Generation generation_;
    std::string folder_;
    std::size_t keep_;
    Warn warn_;
    std::string base_;                    // empty: none
    FolderLock lock_;                     // of the loader
    std::int64_t turn_ = 0;               // 0: the folder is not taken over yet
    bool recorded_ = false;               // what it chose from is written down under this turn
    std::int64_t seen_ = 0;               // without a turn: the last one when it looked
    std::vector<SnapshotName> skipped_;   // could not be loaded
    std::vector<SnapshotName> usable_;    // found when taking over, and our own
    std::optional<SnapshotName> proven_;  // the newest that is known to load
    bool reading_back_ = false;           // the snapshot that begin() has announced
};

// The manifest of this snapshot. Errors: not_found, malformed, unavailable.
Result<Manifest> read_manifest(const std::string& folder, const SnapshotName& name);

// All ranks call this before training, once for each folder, in the same order. All get the same
// snapshot, the newest one that all of them can load, or none of them gets one. One that is skipped
// is named in a warning on rank 0. The whole snapshot is in the memory of each rank; resume_into()
// (load_slices.h) reads into the program's own. `timeout`: how long a rank waits for another to
// load a snapshot. Errors: those of load_newest() and of the store; timed_out, if a rank does not
// answer.
Result<std::optional<Snapshot>> resume(const Context& context, Store& store, SnapshotFolder& folder,
                                       std::chrono::milliseconds timeout);

}  // namespace ddprun::trainer
