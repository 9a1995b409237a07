// How snapshots are named, which of them may be used, in which order they are tried, and which are
// let go.
//
//   DIR/snapshot-000000000100-g3.safetensors   the tensors, written first; when there are many:
//   DIR/snapshot-000000000100-g3-00001-of-00003.safetensors, …
//   DIR/snapshot-000000000100-g3.json          the manifest with the checksums, written last:
//   without it there is none DIR/resume-g3.json                         the names that the loader
//   of generation 3 chose from
//   *.tmp                                      not yet whole
//
// Pure. A stale writer is what the last rule is for: a suspended host may write, as generation 2,
// after generation 3 began. Its manifest is not in the record of generation 3, so no later
// generation takes it (nor does 3 itself).
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
    std::string tensors(std::size_t index = 0, std::size_t files = 1) const;
};

// The name that a manifest's file name stands for; nothing when it is no manifest's.
std::optional<SnapshotName> parse_manifest_name(std::string_view file);

// The snapshot to which any file of one belongs: tensors, manifest or a temporary of either.
std::optional<SnapshotName> snapshot_of(std::string_view file);

// What one generation's loader wrote down.
struct ResumeRecord {
    Generation generation{0};
    std::vector<std::string> manifests;  // file names
};

std::string record_name(Generation generation);  // "resume-g3.json"
std::optional<Generation> parse_record_name(std::string_view file);

// Whether `file` is a temporary of a generation before `generation`, i.e. of a writer that is dead
// or fenced.
bool is_stale_temporary(std::string_view file, Generation generation);

// Whether `file` holds tensors of an earlier generation's snapshot that has no manifest and thus
// never will.
bool is_orphan(std::string_view file, Generation generation,
               const std::vector<SnapshotName>& names);

// Whether a manifest may be used, given the records of the same run.
bool is_admissible(const SnapshotName& name, const std::vector<ResumeRecord>& records);

// The admissible ones, newest first.
std::vector<SnapshotName> candidates(std::vector<SnapshotName> names,
                                     const std::vector<ResumeRecord>& records);

// What to remove so that `keep` remain: all but the newest admissible ones.
std::vector<SnapshotName> surplus(const std::vector<SnapshotName>& names,
                                  const std::vector<ResumeRecord>& records, std::size_t keep);

}  // namespace ddprun::trainer
