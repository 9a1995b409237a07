// Makes a locked temporary folder, and removes folders whose owner is dead.
#include "agent/output/temporary_folder.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>

#include "agent/output/attempt_names.h"

namespace ddprun::agent {
namespace {

namespace fs = std::filesystem;

// Seconds. Between mkdtemp() and flock() a new folder has no lock yet, so young folders are left
// alone.
constexpr std::time_t kUntouched = 60;
// linux/magic.h does not have this one.
constexpr long kXfs = 0x58465342;

UniqueFd open_folder(const std::string& path) {
    return UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

// Local file systems only. A network file system may not show locks of other hosts, so an unlocked
// folder there proves nothing.
bool is_of_this_host(const std::string& folder) {
    struct statfs status {};
    if (::statfs(folder.c_str(), &status) != 0) return false;
    const long local[] = {TMPFS_MAGIC, EXT4_SUPER_MAGIC, BTRFS_SUPER_MAGIC, kXfs,
                          OVERLAYFS_SUPER_MAGIC};
    return std::ranges::find(local, static_cast<long>(status.f_type)) != std::end(local);
}

// An exclusive lock can be taken only if no ddprun holds its shared lock. The kernel releases locks
// when a process dies, however it dies.
bool is_abandoned(const std::string& path) {
    const UniqueFd folder = open_folder(path);
    struct stat status {};
    return folder && ::fstat(folder.get(), &status) == 0 && status.st_uid == ::geteuid() &&
           status.st_mtime < std::time(nullptr) - kUntouched &&
           ::flock(folder.get(), LOCK_EX | LOCK_NB) == 0;
}

}  // namespace

TemporaryFolder make_temporary_folder(const std::string& parent) {
    std::string name = parent + "/" + kTemporaryFolder;
    if (!::mkdtemp(name.data())) return {};
    UniqueFd lock = open_folder(name);
    // The result is ignored: if the file system has no locks, ddprun works without. Then nobody
    // removes the folder after a crash.
    if (lock) ::flock(lock.get(), LOCK_SH | LOCK_NB);
    std::error_code ignored;
    return {fs::absolute(name, ignored).string(), std::move(lock)};
}

void remove_abandoned_folders(const std::string& parent) {
    if (!is_of_this_host(parent)) return;
    const std::string_view pattern = kTemporaryFolder;
    const std::string_view prefix = pattern.substr(0, pattern.find('X'));
    std::error_code error;
    for (fs::directory_iterator at(parent, error), end; !error && at != end; at.increment(error)) {
        const std::string name = at->path().filename();
        // Another ddprun may remove the folder at the same time.
        std::error_code ignored;
        if (name.size() == pattern.size() && name.starts_with(prefix) && is_abandoned(at->path()))
            fs::remove_all(at->path(), ignored);
    }
}

}  // namespace ddprun::agent
