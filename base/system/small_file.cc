// Reads small files of /proc, /sys and the like.
#include "base/system/small_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace ddprun {

// Files of /proc have no size that stat() could tell, so this reads until the end.
std::string read_bounded(int file, std::size_t most) {
    std::string text;
    char buffer[4096];
    while (text.size() < most) {
        const ssize_t got = ::read(file, buffer, std::min(sizeof buffer, most - text.size()));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        text.append(buffer, static_cast<std::size_t>(got));
    }
    return text;
}

std::string read_small_file(const std::string& path) {
    // O_NONBLOCK: a FIFO in the place of the file would make open() wait for a writer.
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    return file ? read_bounded(file.get()) : std::string();
}

std::string KeptFile::read() {
    constexpr int kMany = 512;
    if (!file_) file_ = UniqueFd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file_) return {};
    char buffer[4096];
    const ssize_t got = ::pread(file_.get(), buffer, sizeof buffer, 0);
    if (got < 0 || file_.get() >= kMany) file_ = UniqueFd();
    return got > 0 ? std::string(buffer, static_cast<std::size_t>(got)) : std::string();
}

}  // namespace ddprun
