// The manifest of a snapshot: which files belong to it, with their checksums. With it a reader
// notices a file that was cut short or changed.
//
// The manifest is one JSON object with the fields format, run_id, turn (under which it was written,
// see snapshot_name.h), generation, step, files (for each: name, bytes, xxh3_64), metadata, and
// checksum. The last one is the XXH3-64 of all the other fields, so that the manifest protects
// itself too. Checksums have 16 lower-case hexadecimal digits. If the program gives metadata for
// each rank, there is a field ranks: a list of such objects. Otherwise nothing in the manifest
// depends on the world size, and never on the time.
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
#include "trainer/snapshot/metadata.h"
#include "trainer/snapshot/safetensors.h"
#include "trainer/snapshot/snapshot_name.h"

namespace ddprun::trainer {

// One file of a snapshot, as the manifest describes it.
struct SnapshotFile {
    std::string name;
    std::uint64_t bytes = 0;
    std::string checksum;
    bool operator==(const SnapshotFile&) const = default;
};

// Which tensors lie in which file, as indices into `tensors`. Tensors are taken in the order of
// their names. A file holds up to `limit` bytes, or a single larger tensor. The plan depends only
// on the tensors, not on how many ranks write.
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

// XXH3-64 of bytes that come in pieces.
class Checksum {
  public:
    Checksum();
    ~Checksum();
    Checksum(const Checksum&) = delete;
    Checksum& operator=(const Checksum&) = delete;

    void add(std::span<const std::byte> bytes);
    std::string text() const;

  private:
    void* state_;  // XXH3_state_t, whose header stays in the source
};

std::string checksum_of(std::span<const std::byte> bytes);
std::uint64_t hash_of(std::span<const std::byte> bytes);  // the checksum as a number

}  // namespace ddprun::trainer
