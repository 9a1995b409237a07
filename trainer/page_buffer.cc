#include "trainer/page_buffer.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace ddprun::trainer {

PageBuffer::~PageBuffer() {
    if (data_) ::munmap(data_, room_);
}

Result<void> PageBuffer::resize(std::size_t bytes, bool now) {
    if (bytes <= room_) {
        bytes_ = bytes;
        return {};
    }
    if (data_) ::munmap(data_, room_);
    data_ = nullptr;
    bytes_ = room_ = 0;
    const std::size_t room = (bytes + kPage - 1) / kPage * kPage;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (now ? MAP_POPULATE : 0);
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

}  // namespace ddprun::trainer
