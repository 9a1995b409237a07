// Sends and receives the packets between ddprun and its keeper, and reads their payloads.
#include "keeper/between/keeper_protocol.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>

namespace ddprun::agent::keeper {
namespace {

// Room for the largest number of descriptors in one packet. With less room the kernel would drop
// the rest silently.
constexpr std::size_t kControlSize = CMSG_SPACE(sizeof(int) * kMaxFds);

// EINTR counts as "try again later": the caller polls the socket anyway.
bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

bool read_payload(int fd, std::size_t bytes, std::vector<char>& out) {
    out.resize(bytes);
    for (std::size_t at = 0; at < bytes;) {
        // pread(): both processes share the file offset, and the writer left it at the end.
        const ssize_t n = ::pread(fd, out.data() + at, bytes - at, static_cast<off_t>(at));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        at += static_cast<std::size_t>(n);
    }
    return true;
}

// Checks the sizes in the request against the bytes. `argv` and `environment` then point into
// out.bytes, which must not change afterwards.
bool parse_payload(const Request& request, int fd, WorkerPayload& out) {
    if (!read_payload(fd, request.payload_bytes, out.bytes)) return false;
    const std::size_t cpu_bytes = std::size_t{request.cpus} * sizeof(std::int32_t);
    // There is at least one text (the working directory), so the last byte is a NUL, and no search
    // for the end of a text can leave the bytes.
    if (cpu_bytes > out.bytes.size() || out.bytes.size() == cpu_bytes || out.bytes.back() != '\0')
        return false;
    out.cpus.resize(request.cpus);
    if (cpu_bytes != 0) std::memcpy(out.cpus.data(), out.bytes.data(), cpu_bytes);
    const char* at = out.bytes.data() + cpu_bytes;
    const char* const end = out.bytes.data() + out.bytes.size();
    const auto next = [&]() -> const char* {
        if (at >= end) return nullptr;
        const char* text = at;
        // strlen() finds an end, because the last byte is a NUL.
        at += std::strlen(at) + 1;
        return text;
    };
    const auto texts = [&](std::uint32_t count, std::vector<const char*>& list) {
        for (std::uint32_t i = 0; i < count; ++i) {
            const char* text = next();
            if (text == nullptr) return false;
            list.push_back(text);
        }
        // execve() expects a null pointer at the end.
        list.push_back(nullptr);
        return true;
    };
    if (!texts(request.argc, out.argv) || !texts(request.envc, out.environment)) return false;
    out.cwd = next();
    return out.cwd != nullptr && request.argc > 0;
}

Transfer send_packet(int socket, const void* bytes, std::size_t size, const std::vector<int>& fds) {
    iovec part{const_cast<void*>(bytes), size};
    alignas(cmsghdr) char control[kControlSize] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (!fds.empty()) {
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
        cmsghdr* header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
        std::memcpy(CMSG_DATA(header), fds.data(), sizeof(int) * fds.size());
    }
    // A SOCK_SEQPACKET socket sends a packet completely or not at all.
    if (::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return Transfer::done;
    // ETOOMANYREFS: too many descriptors are in transit. The keeper receives them one packet after
    // the other, so a later attempt succeeds.
    return would_block(errno) || errno == ETOOMANYREFS || errno == ENOBUFS ? Transfer::would_block
                                                                           : Transfer::ended;
}

Transfer receive_packet(int socket, void* bytes, std::size_t size, std::vector<UniqueFd>& fds) {
    iovec part{bytes, size};
    alignas(cmsghdr) char control[kControlSize];
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t n = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (n < 0) return would_block(errno) ? Transfer::would_block : Transfer::ended;
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
         header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
        const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int fd = -1;
            std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
            fds.emplace_back(fd);
        }
    }
    return static_cast<std::size_t>(n) == size ? Transfer::done : Transfer::ended;
}

}  // namespace ddprun::agent::keeper
