// The manifest of a snapshot: which files belong to it, with their checksums. With it a reader
// notices a file that was cut short or changed.
//
// The manifest is one JSON object with the fields format, run_id, turn (under which it was written,
// see snapshot_name.h), generation, step, files (for each: name, bytes, xxh3_64; for files of
// slices also blocks, the XXH3-64 of each MiB), metadata, and checksum. The last one is the XXH3-64
// of all the other fields, so that the manifest protects itself too. Checksums have 16 lower-case
// hexadecimal digits. If the program gives metadata for each rank, there is a field ranks: a list
// of such objects. Otherwise, and but for files of slices, nothing in the manifest depends on the
// world size, and never on the time. The format is 4 where there are slices, which older versions
// cannot put together, and else 3.
//
// Pure. Errors: malformed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "proto/ids.h"
#include "trainer/checksum/checksum.h"
#include "trainer/snapshot/format/metadata.h"
#include "trainer/snapshot/format/safetensors.h"
#include "trainer/snapshot/format/snapshot_name.h"

namespace ddprun::trainer {

// One file of a snapshot, as the manifest describes it.
struct SnapshotFile {
    std::string name;
    std::uint64_t bytes = 0;
    std::string checksum;
    // Of a file of slices: the checksums of its blocks, so that a reader of a part needs no more
    // than the blocks that the part lies in. Empty for other files.
    std::vector<std::string> blocks = {};
    bool operator==(const SnapshotFile&) const = default;
};

// Bytes of a block; the last one of a file may be smaller.
inline constexpr std::size_t kChecksumBlock = std::size_t{1} << 20;

// Which tensors lie in which file, as indices into `tensors`. Slices are in none. Tensors are taken
// in the order of their names. A file holds up to `limit` bytes, or a single larger tensor, and
// no more names than a reader takes. The plan depends only on the tensors, not on how many ranks
// write.
std::vector<std::vector<std::size_t>> plan_files(const std::vector<TensorView>& tensors,
                                                 std::uint64_t limit);

struct Manifest {
    std::string run_id;
    std::int64_t turn = 0;
    SnapshotName name;
    std::vector<SnapshotFile> files;
    Metadata metadata;  // the program's own: seed, settings, position in the data
    // What each rank stored for itself, in their order, for example the state of its random
    // generators. Empty if no rank did.
    std::vector<Metadata> ranks;
};

// A number of the metadata, see metadata.h. Errors: usage; the sentence names the snapshot.
template <class T>
Result<T> value_of(const Manifest& manifest, const std::string& key) {
    auto value = value_of<T>(manifest.metadata, key);
    if (value) return value;
    return usage_error("snapshot " + manifest.name.stem() + ": " + value.error().sentence() +
                       "; is it a snapshot of another program?");
}

// What this rank stored for itself. Errors: not_found, if the snapshot was written by fewer ranks,
// or without metadata of ranks.
Result<Metadata> metadata_of_rank(const Manifest& manifest, Rank rank);

// Metadata as one line of JSON.
std::string write_metadata(const Metadata& metadata);
Result<Metadata> parse_metadata(const std::string& text);

std::string write_manifest(const Manifest& manifest);
Result<Manifest> parse_manifest(const std::string& text);

// The record of a loader, as JSON with its own checksum.
std::string write_record(const ResumeRecord& record);
Result<ResumeRecord> parse_record(const std::string& text);

// The checksums of all blocks of a file.
std::vector<std::string> checksums_of_blocks(std::span<const std::byte> file);

}  // namespace ddprun::trainer
