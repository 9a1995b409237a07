// The names of snapshot files, and rules on names: which snapshots may be used, in which order they
// are tried, and which are removed.
//
//   DIR/snapshot-000000000100-g3.safetensors    tensors of step 100, written by generation 3; if
//                                               there are several files:
//   DIR/snapshot-000000000100-g3-00001-of-00003.safetensors, …
//   DIR/snapshot-000000000100-g3-slices-00002-of-00004.safetensors
//                                               the slices that rank 1 of 4 brought
//   DIR/snapshot-000000000100-g3.safetensors.index.json
//                                               which file has which tensor, if there are slices
//   DIR/snapshot-000000000100-g3.2.safetensors  the same step, saved a second time
//   DIR/snapshot-000000000100-g3.json           the manifest with the checksums, written last:
//                                               without it there is no snapshot
//   DIR/resume-000000000007.json                the record of the folder's seventh loader: the
//                                               manifests from which it chose
//   *.tmp                                       a file that is still being written
//
// The records protect against stale writers. Example: a host is suspended and then writes a
// snapshot of generation 2 after generation 3 has begun. A loader is a rank 0 that resumes from the
// folder. Each loader takes the next number, its turn. The folder belongs to the loader with the
// last turn, and its record lists the manifests that it found. A manifest that is not in the
// record, and was written under an earlier turn, comes from a stale writer and is never used. Turns
// count all loaders of a folder, in all runs. Generations cannot do that: they begin again at 0
// when a job is started again, also under the same run id.
//
// Pure.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proto/ids.h"

namespace ddprun::trainer {

// Which snapshot it is.
struct SnapshotName {
    std::int64_t step = 0;  // optimizer steps done
    Generation generation{0};

    // By step, then by generation: the newest snapshot is the greatest.
    auto operator<=>(const SnapshotName&) const = default;

    std::string stem() const;  // "snapshot-000000000100-g3"
    std::string manifest() const { return stem() + ".json"; }
    // The name of file `index` of `files`. `edition` is 0 for the first time that this snapshot is
    // saved, 1 for the second, and so on. Each edition has its own files, so the old ones stay
    // valid until the new manifest has replaced the old one.
    std::string tensors(std::size_t index = 0, std::size_t files = 1, int edition = 0) const;
    // The file of the slices of one rank.
    std::string slices(std::size_t rank, std::size_t world, int edition = 0) const;
    // The index of the files.
    std::string index(int edition = 0) const;
};

// The snapshot of a manifest's file name. Empty if the name is not that of a manifest.
std::optional<SnapshotName> parse_manifest_name(std::string_view file);

// The snapshot to which a file belongs: tensors, a manifest, or a temporary file of either. Empty
// if the file belongs to none.
std::optional<SnapshotName> snapshot_of(std::string_view file);

// Whether a file has slices, by its name: the rank that brought them, and the number of ranks. Only
// in the spelling of SnapshotName::slices().
std::optional<std::pair<std::size_t, std::size_t>> parse_slices_name(std::string_view file);

// The edition in the name of a tensor file, or of its temporary file. 0 if there is none.
int edition_of(std::string_view file);

// The edition in which `name` is written next: greater than that of any file in the folder.
int next_edition(const SnapshotName& name, const std::vector<std::string>& files);

// The snapshots whose manifests are among these files.
std::vector<SnapshotName> manifests_in(const std::vector<std::string>& files);

// What a loader wrote down. Before it has chosen, its record is an empty file: it only has its
// turn.
struct ResumeRecord {
    std::int64_t turn = 0;
    std::string run_id;
    Generation generation{0};
    std::vector<std::string> manifests;  // file names of all that it could choose from
};

std::string record_name(std::int64_t turn);  // "resume-000000000007.json"
std::optional<std::int64_t> parse_record_name(std::string_view file);

// The turn of the last loader among these files. 0 if there was none.
std::int64_t last_turn(const std::vector<std::string>& files);

// What a loader removes after it has taken its turn: temporary files, and tensors of a snapshot
// without a manifest. The snapshot will never get one, because its writer has lost the folder.
std::vector<std::string> leftovers(const std::vector<std::string>& files);

// Whether a manifest may be used. `turn`: under which it was written. `last`: the record of the
// last loader. It may be used if it was written since then, or if that loader found it.
bool is_admissible(const SnapshotName& name, std::int64_t turn, const ResumeRecord& last);

// What to remove after `saved` was written. `names` are all snapshots in the folder, `usable` those
// that may be loaded. `saved` stays, and so do the newest usable ones before it, `keep` in all.
// Usable snapshots with more steps are neither counted nor removed: they were skipped, because they
// are damaged.
std::vector<SnapshotName> surplus(const std::vector<SnapshotName>& names,
                                  std::vector<SnapshotName> usable, const SnapshotName& saved,
                                  std::size_t keep);

// Whether the snapshot `next` must be read back before it is complete. `proven`: the newest one
// that is known to load, because it was loaded or read back. If it goes (as one of `surplus`, or
// because `next` replaces it), another one must be known to load by then. So of the snapshots of a
// folder that keeps K, every K-th is read back.
bool must_prove(const std::vector<SnapshotName>& surplus, const std::optional<SnapshotName>& proven,
                const SnapshotName& next);

}  // namespace ddprun::trainer
