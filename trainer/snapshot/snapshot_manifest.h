// The manifest of a snapshot: what must be on disk, with checksums, so that a file cut short or
// altered is seen.
//
// JSON, one object: format, run_id, turn (of the loader before it, see snapshot_name.h), generation,
// step, files (each: name, bytes, xxh3_64), metadata, and "checksum", the XXH3-64 of all the rest,
// so that the manifest guards itself too. Checksums are 16 lower-case hexadecimal digits. Pure.
// Nothing in it depends on the world size or the time. Errors: malformed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/error.h"
#include "trainer/snapshot/safetensors.h"
#include "trainer/snapshot/snapshot_name.h"

namespace ddprun::trainer {

struct SnapshotFile {
    std::string name;
    std::uint64_t bytes = 0;
    std::string checksum;
    bool operator==(const SnapshotFile&) const = default;
};

// Which tensors lie in which file: by name, each file up to `limit` bytes or one larger tensor. It
// depends on the tensors only, not on how many ranks write.
std::vector<std::vector<std::size_t>> plan_files(const std::vector<TensorView>& tensors,
                                                 std::uint64_t limit);

struct Manifest {
    std::string run_id;
    std::int64_t turn = 0;
    SnapshotName name;
    std::vector<SnapshotFile> files;
    Metadata metadata;  // the program's own: seed, settings, position in the data, JSON of any form
};

std::string write_manifest(const Manifest& manifest);
Result<Manifest> parse_manifest(const std::string& text);

// The record of one loader, guarded in the same way.
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
    void* state_;
};

std::string checksum_of(std::span<const std::byte> bytes);
std::uint64_t hash_of(std::span<const std::byte> bytes);  // the same as a number

}  // namespace ddprun::trainer
