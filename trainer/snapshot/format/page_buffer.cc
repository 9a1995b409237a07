// Allocates pages with mmap. Files are never mapped: a page that cannot be read ends a process by
// SIGBUS, and a read that fails is an error.
#include "trainer/snapshot/format/page_buffer.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace ddprun::trainer {
namespace {

std::size_t whole_pages(std::size_t bytes) {
    return (bytes + PageBuffer::kPage - 1) / PageBuffer::kPage * PageBuffer::kPage;
}

// Null: there is no memory.
std::byte* map_pages(std::size_t bytes, int flags) {
    void* made =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    return made == MAP_FAILED ? nullptr : static_cast<std::byte*>(made);
}

Error no_memory(std::size_t bytes) {
    return Error(ErrorCode::unavailable, "no memory for " + std::to_string(bytes) +
                                             " bytes of a snapshot: " + std::strerror(errno));
}

}  // namespace

PageBuffer::~PageBuffer() {
    if (data_) ::munmap(data_, room_);
}

Result<void> PageBuffer::resize(std::size_t bytes) {
    // The pages stay, so a buffer that is used again costs nothing.
    if (bytes <= room_) {
        bytes_ = bytes;
        return {};
    }
    *this = PageBuffer();
    // MAP_POPULATE: the kernel provides all pages now, not at the first write to each.
    data_ = map_pages(whole_pages(bytes), MAP_POPULATE);
    if (!data_) return no_memory(bytes);
    bytes_ = bytes;
    room_ = whole_pages(bytes);
    return {};
}

Result<void> PageBuffer::reserve(std::size_t bytes) {
    *this = PageBuffer();
    if (bytes == 0) return {};
    data_ = map_pages(whole_pages(bytes), MAP_NORESERVE);
    if (!data_) return no_memory(bytes);
    bytes_ = bytes;
    room_ = whole_pages(bytes);
    return {};
}

void PageBuffer::use_large_pages() {
    if (data_) (void)::madvise(data_, room_, MADV_HUGEPAGE);
}

void PageBuffer::give_back() {
    if (data_) (void)::madvise(data_, room_, MADV_DONTNEED);
}

}  // namespace ddprun::trainer
