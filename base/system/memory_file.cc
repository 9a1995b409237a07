// Makes the file in the newest way that the kernel knows.
#include "base/system/memory_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/system/write_all.h"

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

Result<UniqueFd> memory_file(const std::string& bytes) {
    UniqueFd file(::memfd_create("ddprun", MFD_CLOEXEC));
    for (const char* folder : {"/dev/shm", "/tmp"})
        if (!file) file = without_name(folder);
    if (!file)
        return Error(ErrorCode::internal,
                     std::string("no memory file is to be had: ") + std::strerror(errno));
    if (const int problem = write_all(file.get(), bytes))
        return Error(ErrorCode::internal,
                     std::string("no room in a memory file: ") + std::strerror(problem));
    return file;
}

}  // namespace ddprun
