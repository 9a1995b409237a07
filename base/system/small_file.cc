#include "base/system/small_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/system/unique_fd.h"

namespace ddprun {

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
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    return file ? read_bounded(file.get()) : std::string();
}

}  // namespace ddprun
