// How snapshots are named, which of them may be used, in which order they are tried, and which are
// let go.
//
//   DIR/snapshot-000000000100-g3.safetensors    the tensors, written first; when there are many:
//   DIR/snapshot-000000000100-g3-00001-of-00003.safetensors, …
//   DIR/snapshot-000000000100-g3.2.safetensors  those of the same step saved once more
//   DIR/snapshot-000000000100-g3.json           the manifest with the checksums, written last:
//                                               without it there is none
//   DIR/resume-000000000007.json                the folder's seventh loader, and the names that it
//                                               chose from
//   *.tmp                                       not yet whole
//
// Pure. A stale writer is what the records are for: a suspended host may write, as generation 2,
// after generation 3 began. A folder belongs to the loader that took the last turn. Its record names
// the manifests that were there; what is not in it, and was written under an earlier turn, is a
// stale writer's, and nobody takes it. Turns count the loaders of a folder, of whatever
// run: generations begin again at 0 when a job is started again, also under the same run id.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proto/ids.h"

namespace ddprun::trainer {

struct SnapshotName {
    std::int64_t step = 0;  // optimizer steps done
    Generation generation{0};

    // By step, then generation: the newest is the greatest.
    auto operator<=>(const SnapshotName&) const = default;

    std::string stem() const;  // "snapshot-000000000100-g3"
    std::string manifest() const { return stem() + ".json"; }
    // `edition` > 0: the files of the same name had been written before; they stay until the new
    // manifest is in the place of the old.
    std::string tensors(std::size_t index = 0, std::size_t files = 1, int edition = 0) const;
};

// The name that a manifest's file name stands for; nothing when it is no manifest's.
std::optional<SnapshotName> parse_manifest_name(std::string_view file);

// The snapshot to which any file of one belongs: tensors, manifest or a temporary of either.
std::optional<SnapshotName> snapshot_of(std::string_view file);

// Of a file with tensors, or a temporary of one.
int edition_of(std::string_view file);

// The edition that `name` is written in next: one that no file has.
int next_edition(const SnapshotName& name, const std::vector<std::string>& files);

// What one loader wrote down. Until it has chosen, its record is an empty file: it has the turn.
struct ResumeRecord {
    std::int64_t turn = 0;
    std::string run_id;
    Generation generation{0};
    std::vector<std::string> manifests;  // file names
};

std::string record_name(std::int64_t turn);  // "resume-000000000007.json"
std::optional<std::int64_t> parse_record_name(std::string_view file);

// The turn of the last loader among these files; 0: there was none.
std::int64_t last_turn(const std::vector<std::string>& files);

// What a loader that has its turn removes of those before it: temporaries of ours, and tensors of a
// snapshot that has no manifest among `files`, and thus never will.
std::vector<std::string> leftovers(const std::vector<std::string>& files);

// Whether a manifest that was written under `turn` may be used after the loader of `last`.
bool is_admissible(const SnapshotName& name, std::int64_t turn, const ResumeRecord& last);

// What to remove after `saved` was written so that `keep` remain: it, and the newest before it among
// `usable`. Usable ones with more steps are neither counted nor removed: they were skipped, as
// damaged or by decision.
std::vector<SnapshotName> surplus(const std::vector<SnapshotName>& names,
                                  std::vector<SnapshotName> usable, const SnapshotName& saved,
                                  std::size_t keep);

}  // namespace ddprun::trainer
