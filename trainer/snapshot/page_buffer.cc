// Allocates and maps pages with mmap.
#include "trainer/snapshot/page_buffer.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace ddprun::trainer {

PageBuffer::~PageBuffer() {
    if (data_) ::munmap(data_, room_);
}

Result<void> PageBuffer::resize(std::size_t bytes) {
    // The pages stay, so a buffer that is used again costs nothing.
    if (bytes <= room_) {
        bytes_ = bytes;
        return {};
    }
    if (data_) ::munmap(data_, room_);
    data_ = nullptr;
    bytes_ = room_ = 0;
    const std::size_t room = (bytes + kPage - 1) / kPage * kPage;
    // MAP_POPULATE: the kernel provides all pages now, not at the first write to each.
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE;
    void* made = ::mmap(nullptr, room, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (made == MAP_FAILED) {
        return Error(ErrorCode::unavailable, "no memory for " + std::to_string(bytes) +
                                                 " bytes of a snapshot: " + std::strerror(errno));
    }
    data_ = static_cast<std::byte*>(made);
    bytes_ = bytes;
    room_ = room;
    return {};
}

int PageBuffer::map(int file, std::size_t bytes) {
    // The kernel reads the whole file ahead while its first pages are mapped. A mapping is cheaper
    // than reading into fresh memory, each page of which the kernel has to fill with zeros first.
    (void)::posix_fadvise(file, 0, 0, POSIX_FADV_WILLNEED);
    if (const int problem = map_lazily(file, bytes)) return problem;
    // For reading: a private page that is populated for writing would be copied. A kernel without
    // this call maps the pages one by one when they are touched.
    if (bytes) (void)::madvise(data_, bytes, MADV_POPULATE_READ);
    return 0;
}

int PageBuffer::map_lazily(int file, std::size_t bytes) {
    *this = PageBuffer();
    if (bytes == 0) return 0;
    void* made =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file, 0);
    if (made == MAP_FAILED) return errno;
    data_ = static_cast<std::byte*>(made);
    bytes_ = bytes;
    room_ = (bytes + kPage - 1) / kPage * kPage;
    return 0;
}

// The kernel starts to read the whole range before it maps the first page of it.
void PageBuffer::read_ahead(std::size_t offset, std::size_t bytes) {
    if (bytes == 0) return;
    std::byte* first = data_ + offset / kPage * kPage;
    const std::size_t length = static_cast<std::size_t>(data_ + offset + bytes - first);
    (void)::madvise(first, length, MADV_WILLNEED);
    (void)::madvise(first, length, MADV_POPULATE_READ);
}

}  // namespace ddprun::trainer
