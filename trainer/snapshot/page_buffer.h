// Memory in whole pages that are there before they are written: the first copy into it is as fast
// as the tenth, and files can be written from it past the system's cache. Or the pages of a file,
// without a copy.
//
// Movable; one thread at a time.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "base/error.h"

namespace ddprun::trainer {

class PageBuffer {
  public:
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

    // At least so many bytes, rounded up to pages; what it held is lost when it grows. Errors:
    // unavailable.
    Result<void> resize(std::size_t bytes);

    // The first `bytes` of an open file, private to this process, read already. For files that are
    // replaced, never changed: one that is cut short later ends the reader. Returns errno.
    int map(int file, std::size_t bytes);

    std::span<std::byte> bytes() { return {data_, bytes_}; }
    std::span<const std::byte> bytes() const { return {data_, bytes_}; }
    std::size_t room() const { return room_; }

  private:
    std::byte* data_ = nullptr;
    std::size_t bytes_ = 0, room_ = 0;
};

}  // namespace ddprun::trainer
