// PageBuffer: memory in whole pages that the kernel has already provided. So the first copy into it
// is as fast as a later one, and a file can be written from it with O_DIRECT. It can also hold the
// pages of a file, without a copy.
//
// Movable. Thread: one at a time.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "base/error.h"

namespace ddprun::trainer {

class PageBuffer {
  public:
    // Also the alignment that O_DIRECT needs.
    static constexpr std::size_t kPage = 4096;

    PageBuffer() = default;
    ~PageBuffer();
    PageBuffer(PageBuffer&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)),
          bytes_(std::exchange(other.bytes_, 0)),
          room_(std::exchange(other.room_, 0)) {}
    PageBuffer& operator=(PageBuffer&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        std::swap(room_, other.room_);
        return *this;
    }

    // Makes room for at least `bytes`, rounded up to pages. If the buffer has to grow, its content
    // is lost. Errors: unavailable.
    Result<void> resize(std::size_t bytes);

    // Maps the first `bytes` of an open file, privately for this process, and reads them. The file
    // must not become shorter while it is mapped: touching a missing page ends the process by
    // SIGBUS. Snapshots are replaced, never changed. Returns 0 or errno.
    int map(int file, std::size_t bytes);

    // The same without reading: pages come when they are touched, or asked for by read_ahead().
    int map_lazily(int file, std::size_t bytes);
    // Reads these bytes of a mapped file now, in one go.
    void read_ahead(std::size_t offset, std::size_t bytes);

    std::span<std::byte> bytes() { return {data_, bytes_}; }
    std::span<const std::byte> bytes() const { return {data_, bytes_}; }
    // Bytes of all pages.
    std::size_t room() const { return room_; }

  private:
    std::byte* data_ = nullptr;
    std::size_t bytes_ = 0, room_ = 0;
};

}  // namespace ddprun::trainer
