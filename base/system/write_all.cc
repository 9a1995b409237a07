// The loop around write() and pwrite().
#include "base/system/write_all.h"

#include <unistd.h>

#include <cerrno>

namespace ddprun {
namespace {

template <class Write>
int repeat(std::string_view bytes, const BetweenWrites& between, Write&& write) {
    while (!bytes.empty()) {
        const ssize_t size = write(bytes);
        if (size > 0) {
            bytes.remove_prefix(static_cast<std::size_t>(size));
            if (between.has_written) between.has_written();
        } else if (size == 0) {
            return EIO;  // it would be so for ever
        } else if (errno == EAGAIN && between.wait_for_room) {
            if (!between.wait_for_room()) return EAGAIN;
        } else if (errno != EINTR) {
            return errno;
        }
    }
    return 0;
}

}  // namespace

int write_all(int file, std::string_view bytes, const BetweenWrites& between) {
    return repeat(bytes, between, [file](std::string_view rest) {
        return ::write(file, rest.data(), rest.size());
    });
}

int write_all_at(int file, std::string_view bytes, std::int64_t at) {
    const char* begin = bytes.data();
    return repeat(bytes, {}, [=](std::string_view rest) {
        return ::pwrite(file, rest.data(), rest.size(), at + (rest.data() - begin));
    });
}

}  // namespace ddprun
