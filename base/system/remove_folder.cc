// Removes a folder through descriptors, so that no path is looked up twice.
#include "base/system/remove_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <string_view>

#include "base/system/unique_fd.h"

namespace ddprun {
namespace {

// Each level needs a descriptor.
constexpr int kDeepest = 100;
constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

// Of this user, and on this device.
bool is_ours(int folder, dev_t device) {
    struct stat status {};
    return ::fstat(folder, &status) == 0 && status.st_uid == ::geteuid() && status.st_dev == device;
}

void empty_folder(UniqueFd folder, dev_t device, int depth) {
    const int fd = folder.get();
    const auto close = [](DIR* open) { ::closedir(open); };
    const std::unique_ptr<DIR, decltype(close)> open(::fdopendir(fd));
    if (!open) return;
    (void)folder.release();
    while (const dirent* entry = ::readdir(open.get())) {
        const std::string_view name = entry->d_name;
        if (name == "." || name == "..") continue;
        // Fails for a folder, and for nothing else that is ours.
        if (entry->d_type != DT_DIR && ::unlinkat(fd, entry->d_name, 0) == 0) continue;
        UniqueFd inner(::openat(fd, entry->d_name, kFolder));
        if (!inner || depth >= kDeepest || !is_ours(inner.get(), device)) continue;
        empty_folder(std::move(inner), device, depth + 1);
        ::unlinkat(fd, entry->d_name, AT_REMOVEDIR);
    }
}

}  // namespace

void remove_folder(const std::string& path, int made) {
    UniqueFd folder(::open(path.c_str(), kFolder));
    struct stat here {};
    struct stat then {};
    if (!folder || ::fstat(folder.get(), &here) != 0 || !is_ours(folder.get(), here.st_dev)) return;
    if (made >= 0 &&
        (::fstat(made, &then) != 0 || here.st_dev != then.st_dev || here.st_ino != then.st_ino))
        return;
    empty_folder(std::move(folder), here.st_dev, 0);
    ::rmdir(path.c_str());
}

}  // namespace ddprun
