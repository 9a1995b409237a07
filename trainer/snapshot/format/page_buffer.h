// PageBuffer: memory in whole pages that the kernel has already provided. So the first copy into it
// is as fast as a later one, and a file can be written from it with O_DIRECT.
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

    // Makes room for `bytes` whose pages the kernel provides at the first write to each: for
    // content that is read from a file. What was in the buffer is lost. Errors: unavailable.
    Result<void> reserve(std::size_t bytes);
    // After reserve(), where all of it will be written: with large pages, if the kernel has some.
    // The first write to a small one costs as much as three copies of it.
    void use_large_pages();
    // Gives the pages back. The addresses stay, and read as zeros.
    void give_back();

    std::span<std::byte> bytes() { return {data_, bytes_}; }
    std::span<const std::byte> bytes() const { return {data_, bytes_}; }
    // Bytes of all pages.
    std::size_t room() const { return room_; }

  private:
    std::byte* data_ = nullptr;
    std::size_t bytes_ = 0, room_ = 0;
};

}  // namespace ddprun::trainer
