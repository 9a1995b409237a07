// Snapshots in a folder: save one so that it is whole or not there, find the newest valid one,
// agree on it.
//
// One rank (rank 0) saves, for its state is everybody's; all ranks load. Which one is loaded is
// decided once: rank 0 verifies the candidates newest first, records what it chose from (see
// snapshot_name.h), and tells the others through the store, so that ranks never resume from
// different steps. The content does not depend on the world size. The folder must be on a file
// system that all nodes share.
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

    std::vector<std::byte> bytes;
};

class SnapshotFolder {
  public:
    // Makes the folder where it is missing. `keep` newest ones are kept (at least 1).
    static Result<SnapshotFolder> open(const Context& context, std::string folder, std::size_t keep,
                                       Warn warn);

    // Writes tensors, then manifest; then lets the surplus go. Errors: unavailable, usage. On an
    // error the older ones stay.
    Result<void> save(std::int64_t step, const std::vector<TensorView>& tensors,
                      const Metadata& metadata);

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
    void remove_temporaries();
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
