// Makes the file in the newest way that the kernel knows.
#include "base/system/memory_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace ddprun {
namespace {

UniqueFd without_name(const std::string& folder) {
    UniqueFd file(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (file) return file;
    // Linux before 3.11, and some network file systems, know no O_TMPFILE.
    std::string path = folder + "/ddprun-XXXXXX";
    file.reset(::mkostemp(path.data(), O_CLOEXEC));
    if (file) ::unlink(path.c_str());
    return file;
}

}  // namespace

// write() may take only a part, so this repeats until all bytes are there.
Result<UniqueFd> memory_file(const std::string& bytes) {
    UniqueFd file(::memfd_create("ddprun", MFD_CLOEXEC));
    for (const char* folder : {"/dev/shm", "/tmp"})
        if (!file) file = without_name(folder);
    if (!file)
        return Error(ErrorCode::internal,
                     std::string("no memory file is to be had: ") + std::strerror(errno));
    for (std::size_t at = 0; at < bytes.size();) {
        const ssize_t n = ::write(file.get(), bytes.data() + at, bytes.size() - at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0)
            return Error(ErrorCode::internal,
                         std::string("no room in a memory file: ") + std::strerror(errno));
        at += static_cast<std::size_t>(n);
    }
    return file;
}

}  // namespace ddprun
