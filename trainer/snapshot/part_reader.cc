// Maps a file, and reads and compares the blocks that are asked for.
#include "trainer/snapshot/part_reader.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace ddprun::trainer {

namespace {

// A small part of a core's own cache.
constexpr std::size_t kPiece = std::size_t{128} << 10;

}  // namespace

PartReader::PartReader(const SnapshotFile& file, MappedFile mapped)
    : file_(&file),
      open_(std::move(mapped.file)),
      pages_(std::move(mapped.pages)),
      checked_(file.blocks.empty() ? 1 : file.blocks.size()) {}

Result<PartReader> PartReader::open(const std::string& folder, const SnapshotFile& file) {
    auto mapped = map_file(folder + "/" + file.name);
    if (!mapped) return mapped.error();
    if (const std::size_t bytes = mapped->pages.bytes().size(); bytes != file.bytes)
        return Error(ErrorCode::malformed, file.name + " has " + std::to_string(bytes) +
                                               " bytes, the manifest says " +
                                               std::to_string(file.bytes));
    return PartReader(file, std::move(*mapped));
}

std::size_t PartReader::block_bytes() const {
    return file_->blocks.empty() ? pages_.bytes().size() : kChecksumBlock;
}

std::size_t PartReader::bytes_of(std::size_t block) const {
    return std::min(block_bytes(), pages_.bytes().size() - block * block_bytes());
}

Result<void> PartReader::check(std::size_t begin, std::size_t end) {
    if (begin >= end) return {};
    const std::size_t size = block_bytes();
    for (std::size_t block = begin / size; block * size < end; ++block) {
        if (checked_[block]) continue;
        pages_.read_ahead(block * size, bytes_of(block));
        const std::span<const std::byte> all = pages_.bytes();
        const auto own = checksum_of(all.subspan(block * size, bytes_of(block)));
        if (auto good = compare(block, own); !good) return good;
        checked_[block] = true;
    }
    return {};
}

Result<void> PartReader::compare(std::size_t block, const std::string& checksum) {
    const auto& expected = file_->blocks.empty() ? file_->checksum : file_->blocks[block];
    const std::size_t first = block * block_bytes();
    if (checksum != expected)
        return Error(ErrorCode::malformed,
                     file_->name + " does not match its checksum between the bytes " +
                         std::to_string(first) + " and " + std::to_string(first + bytes_of(block)));
    bytes_read_ += bytes_of(block);
    return {};
}

// By read(2) into its place: a page of a mapped file that is touched for the first time costs more.
// In pieces, so that the checksum finds them in the core's own cache.
Result<void> PartReader::read_block(std::byte* to, std::size_t block) {
    const std::size_t first = block * block_bytes(), count = bytes_of(block);
    Checksum checksum;
    for (std::size_t done = 0; done < count;) {
        const ssize_t got = ::pread(open_.get(), to + done, std::min(count - done, kPiece),
                                    static_cast<off_t>(first + done));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0)
            return Error(ErrorCode::unavailable,
                         "cannot read " + file_->name + ": " +
                             (got < 0 ? std::strerror(errno) : "it has become shorter"));
        checksum.add({to + done, static_cast<std::size_t>(got)});
        done += static_cast<std::size_t>(got);
    }
    return compare(block, checksum.text());
}

Result<Safetensors> PartReader::header() {
    std::span<const std::byte> file = pages_.bytes();
    if (!file_->blocks.empty()) {
        // The length first, then what it says.
        if (auto good = check(0, std::min<std::size_t>(file.size(), 8)); !good) return good.error();
        const auto bytes = header_bytes(file);
        if (auto good = check(0, std::min<std::uint64_t>(bytes, file.size())); !good)
            return good.error();
    }
    return parse_safetensors(file);
}

// Block by block: what was just compared is still in the cache when it is copied.
Result<void> PartReader::copy(std::byte* to, std::span<const std::byte> from) {
    std::size_t at = static_cast<std::size_t>(from.data() - pages_.bytes().data());
    const std::size_t end = at + from.size(), size = block_bytes();
    while (at < end) {
        const std::size_t block = at / size, stop = std::min(end, (block + 1) * size);
        if (stop - at == bytes_of(block) && !checked_[block]) {
            if (auto good = read_block(to, block); !good) return good;
        } else {
            if (auto good = check(at, stop); !good) return good;
            std::memcpy(to, pages_.bytes().data() + at, stop - at);
        }
        to += stop - at;
        at = stop;
    }
    return {};
}

}  // namespace ddprun::trainer
