// Maps a file, and reads and compares the blocks that are asked for.
#include "trainer/snapshot/part_reader.h"

#include <algorithm>
#include <cstring>

#include "trainer/snapshot/durable_file.h"

namespace ddprun::trainer {

PartReader::PartReader(const SnapshotFile& file, PageBuffer pages)
    : file_(&file),
      pages_(std::move(pages)),
      checked_(file.blocks.empty() ? 1 : file.blocks.size()) {}

Result<PartReader> PartReader::open(const std::string& folder, const SnapshotFile& file) {
    auto pages = map_file(folder + "/" + file.name);
    if (!pages) return pages.error();
    if (pages->bytes().size() != file.bytes)
        return Error(ErrorCode::malformed,
                     file.name + " has " + std::to_string(pages->bytes().size()) +
                         " bytes, the manifest says " + std::to_string(file.bytes));
    return PartReader(file, std::move(*pages));
}

std::size_t PartReader::block_bytes() const {
    return file_->blocks.empty() ? pages_.bytes().size() : kChecksumBlock;
}

Result<void> PartReader::check(std::size_t begin, std::size_t end) {
    if (begin >= end) return {};
    const std::size_t size = block_bytes();
    for (std::size_t block = begin / size; block * size < end; ++block) {
        if (checked_[block]) continue;
        const std::size_t first = block * size;
        const std::size_t count = std::min(size, pages_.bytes().size() - first);
        pages_.read_ahead(first, count);
        const auto& expected = file_->blocks.empty() ? file_->checksum : file_->blocks[block];
        if (checksum_of(std::span<const std::byte>(pages_.bytes()).subspan(first, count)) !=
            expected)
            return Error(ErrorCode::malformed,
                         file_->name + " does not match its checksum between the bytes " +
                             std::to_string(first) + " and " + std::to_string(first + count));
        checked_[block] = true;
        bytes_read_ += count;
    }
    return {};
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
        const std::size_t stop = std::min(end, (at / size + 1) * size);
        if (auto good = check(at, stop); !good) return good;
        std::memcpy(to, pages_.bytes().data() + at, stop - at);
        to += stop - at;
        at = stop;
    }
    return {};
}

}  // namespace ddprun::trainer
