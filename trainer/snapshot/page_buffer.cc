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
    if (bytes <= room_) {
        bytes_ = bytes;
        return {};
    }
    if (data_) ::munmap(data_, room_);
    data_ = nullptr;
    bytes_ = room_ = 0;
    const std::size_t room = (bytes + kPage - 1) / kPage * kPage;
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
    *this = PageBuffer();
    if (bytes == 0) return 0;
    // Readahead of the whole file goes on while its first pages are entered. Fresh memory would
    // cost more than the reading: the kernel zeroes each page of it.
    (void)::posix_fadvise(file, 0, 0, POSIX_FADV_WILLNEED);
    void* made =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file, 0);
    if (made == MAP_FAILED) return errno;
    data_ = static_cast<std::byte*>(made);
    bytes_ = bytes;
    room_ = (bytes + kPage - 1) / kPage * kPage;
    // Entered for reading: for writing, each private page would be copied. A kernel without this
    // call enters them one by one.
    (void)::madvise(made, bytes, MADV_POPULATE_READ);
    return 0;
}

}  // namespace ddprun::trainer
