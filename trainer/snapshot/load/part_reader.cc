// Reads and compares the blocks that are asked for.
#include "trainer/snapshot/load/part_reader.h"

#include <algorithm>
#include <cstring>

namespace ddprun::trainer {

namespace {

// A small part of a core's own cache.
constexpr std::size_t kPiece = std::size_t{128} << 10;

}  // namespace

PartReader::PartReader(const SnapshotFile& file, ReadableFile open, PageBuffer pages)
    : file_(&file),
      open_(std::move(open)),
      pages_(std::move(pages)),
      checked_(file.blocks.empty() ? 1 : file.blocks.size()) {}

Result<PartReader> PartReader::open(const std::string& folder, const SnapshotFile& file) {
    auto open = ReadableFile::open(folder + "/" + file.name);
    if (!open) return open.error();
    if (open->bytes() != file.bytes)
        return Error(ErrorCode::malformed, file.name + " has " + std::to_string(open->bytes()) +
                                               " bytes, the manifest says " +
                                               std::to_string(file.bytes));
    PageBuffer pages;
    if (auto done = pages.reserve(static_cast<std::size_t>(file.bytes)); !done) return done.error();
    return PartReader(file, std::move(*open), std::move(pages));
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
        if (auto good = read_block(pages_.bytes().data() + block * size, block); !good) return good;
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

// In pieces, so that the checksum finds them in the core's own cache.
Result<void> PartReader::read_block(std::byte* to, std::size_t block) {
    const std::size_t first = block * block_bytes(), count = bytes_of(block);
    Checksum checksum;
    for (std::size_t done = 0; done < count;) {
        const std::span piece(to + done, std::min(count - done, kPiece));
        if (auto read = open_.read(first + done, piece); !read) return read;
        checksum.add(piece);
        done += piece.size();
    }
    return compare(block, checksum.text());
}

Result<Safetensors> PartReader::header() {
    const std::span<std::byte> file = pages_.bytes();
    const auto have = [&](std::uint64_t bytes) {
        const auto begin = file.first(std::min<std::uint64_t>(bytes, file.size()));
        return file_->blocks.empty() ? open_.read(0, begin) : check(0, begin.size());
    };
    // The length first, then what it says.
    if (auto good = have(8); !good) return good.error();
    if (auto good = have(header_bytes(file)); !good) return good.error();
    return parse_safetensors(file);
}

void PartReader::rest() {
    if (!file_->blocks.empty()) return;
    pages_.give_back();
    checked_.assign(1, false);
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
