// PartReader: a file of a snapshot of which only parts are read. Each block is compared with its
// checksum before a byte of it is used. A file without checksums of blocks is one block. The file
// is read, never mapped: a disk that fails gives an error.
//
// Movable. Thread: one. Errors: unavailable, not_found; malformed, for a file that is not what the
// manifest says.
#pragma once

#include <string>
#include <vector>

#include "trainer/snapshot/format/durable_file.h"
#include "trainer/snapshot/format/page_buffer.h"
#include "trainer/snapshot/format/safetensors.h"
#include "trainer/snapshot/format/snapshot_manifest.h"

namespace ddprun::trainer {

class PartReader {
  public:
    // Compares the size only. `file` must outlive the reader.
    static Result<PartReader> open(const std::string& folder, const SnapshotFile& file);

    // The tensors of the file; their data have not been read. Of a file of one block the header is
    // not compared either: it says whether the rest is needed. (The first copy() compares it.)
    Result<Safetensors> header();

    // Copies bytes of the file, which are given by their place in its memory.
    Result<void> copy(std::byte* to, std::span<const std::byte> from);
    bool has(const std::byte* at) const {
        return at >= pages_.bytes().data() && at < pages_.bytes().data() + pages_.bytes().size();
    }

    // Compares the whole file.
    Result<void> check_all() { return check(0, pages_.bytes().size()); }

    // The next copy() will be from another file. A file of one block gives its memory back: it was
    // read as a whole for the sake of its checksum.
    void rest();

    // How many bytes were read and compared.
    std::uint64_t bytes_read() const { return bytes_read_; }

  private:
    PartReader(const SnapshotFile& file, ReadableFile open, PageBuffer pages);
    Result<void> check(std::size_t begin, std::size_t end);
    Result<void> read_block(std::byte* to, std::size_t block);
    Result<void> compare(std::size_t block, const std::string& checksum);
    std::size_t bytes_of(std::size_t block) const;
    std::size_t block_bytes() const;

    const SnapshotFile* file_;
    ReadableFile open_;
    PageBuffer pages_;           // a place for each byte of the file; only some are read
    std::vector<bool> checked_;  // one for each block of pages_
    std::uint64_t bytes_read_ = 0;
};

}  // namespace ddprun::trainer
